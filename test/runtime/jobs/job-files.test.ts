import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { checkOutput, inspectInputs } from '../../../runtime/jobs/job-files.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const file = path.join(directory, 'file')
writeFileSync(file, 'four')

test('inputs are told with their sizes, in order', async () => {
  expect(await inspectInputs([file, file])).toEqual([
    { path: file, sizeBytes: 4 },
    { path: file, sizeBytes: 4 },
  ])
})

test.each([
  ['is not there', path.join(directory, 'missing')],
  ['is a directory', directory],
  ['is a device', '/dev/null'],
])('an input that %s is refused by name', async (_what, input) => {
  await expect(inspectInputs([file, input])).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(input) as string,
  })
})

test('an output may be new or replace a file', async () => {
  await checkOutput(path.join(directory, 'new'))
  await checkOutput(file)
})

test.each([
  ['is a directory', directory],
  ['has no directory', path.join(directory, 'missing', 'new')],
])('an output that %s is refused by name', async (_what, output) => {
  await expect(checkOutput(output)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})
