import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { eventCodes, loadShuffleServiceFactory } from '../../client/spi.ts'
import { entryTypes } from '../../client/protocol/entry.ts'

const directory = mkdtempSync(join(tmpdir(), 'sluice-spi-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})

let moduleCount = 0

function moduleOf(text: string): string {
  moduleCount += 1
  const path = join(directory, `module-${String(moduleCount)}.mjs`)
  writeFileSync(path, text)
  return pathToFileURL(path).href
}

test('a shuffle service is loaded by the name of its module', async () => {
  const name = moduleOf(
    'export const shuffleServiceFactory = { createShuffleMaster: () => 1, createShuffleEnvironment: () => 2 }',
  )
  const factory = await loadShuffleServiceFactory(name)
  expect(Object.keys(factory)).toEqual(['createShuffleMaster', 'createShuffleEnvironment'])
})

test('a module without a factory is refused by name', async () => {
  const wrong = [
    'export const other = 1',
    'export const shuffleServiceFactory = null',
    'export const shuffleServiceFactory = { createShuffleMaster: () => 1 }',
  ]
  for (const text of wrong) {
    const name = moduleOf(text)
    await expect(loadShuffleServiceFactory(name)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(name) as string,
    })
  }
})

test('the public event codes are those of the wire', () => {
  const { data, ...events } = entryTypes
  expect(data).toBe(0)
  expect(eventCodes).toEqual(events)
})
