import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { lineSeparators, wordSeparators } from '../../../runtime/input/block-reader.ts'
import { sampleBytesMax, sampleInput } from '../../../runtime/input/sampler.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

function file(name: string, content: string) {
  const at = path.join(directory, name)
  writeFileSync(at, content)
  return { path: at, sizeBytes: content.length }
}

const lines = { separators: lineSeparators, includesEmpty: true }

function texts(samples: readonly Uint8Array[]): string[] {
  return samples.map((sample) => Buffer.from(sample).toString())
}

test('of a small input every line is a sample', async () => {
  const samples = await sampleInput([file('small', 'b\n\na\nc')], lines)
  expect(texts(samples)).toEqual(['b', '', 'a', 'c'])
})

test('empty words are none', async () => {
  const options = { separators: wordSeparators, includesEmpty: false }
  expect(texts(await sampleInput([file('words', ' b  a\n\n')], options))).toEqual(['b', 'a'])
})

test('an empty input has no samples', async () => {
  expect(await sampleInput([file('empty', '')], lines)).toEqual([])
  expect(await sampleInput([], lines)).toEqual([])
})

test('of a large input samples come from everywhere, and are bounded', async () => {
  const all = Array.from({ length: 20_000 }, (_, index) => String(index).padStart(6, '0'))
  const inputs = [
    file('one', `${all.slice(0, 10_000).join('\n')}\n`),
    file('two', `${all.slice(10_000).join('\n')}\n`),
  ]
  const samples = texts(
    await sampleInput(inputs, { ...lines, placesMax: 20, placeBytes: 100, samplesMax: 100 }),
  )
  expect(samples.length).toBeGreaterThan(50)
  expect(samples.length).toBeLessThanOrEqual(200)
  const quarters = new Set(
    samples.filter((text) => text.length === 6).map((text) => Math.floor(Number(text) / 5000)),
  )
  expect(quarters).toEqual(new Set([0, 1, 2, 3]))
})

test('the cut first line of a place is no sample, and long ones are cut', async () => {
  const long = 'x'.repeat(sampleBytesMax * 3)
  const samples = await sampleInput([file('long', `${long}\n${long}\n`)], {
    ...lines,
    placeBytes: 2000,
  })
  for (const sample of samples) {
    expect(sample.length).toBeLessThanOrEqual(sampleBytesMax)
    expect(texts([sample])[0]).toMatch(/^x*$/)
  }
})
