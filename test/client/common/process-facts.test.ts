import { expect, test } from 'vitest'
import { processFacts } from '../../../client/common/process-facts.ts'

test('a process says what it runs on and what it may use', () => {
  const facts = processFacts(
    'Limit  Soft\nMax open files            1024                 4096  files\n',
  )
  expect(facts).toMatchObject({ node: process.version, pid: process.pid, openFilesMax: '1024' })
  expect(facts['residentBytes']).toBeGreaterThan(1_000_000)
  expect(processFacts('')).toMatchObject({ openFilesMax: 'unknown' })
})
