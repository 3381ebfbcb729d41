import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'

import { sortRecords } from '../../../runtime/jobs/gate-records.ts'
import { ExternalSorter } from '../../../runtime/sort/external-sorter.ts'
import { taskBench } from '../../support/task-context.ts'

test('every record of a gate comes to the sorter, and progress is told', async () => {
  const bench = await taskBench(1)
  const gate = bench.gateOf(['cc', 'a', 'bbb'].map((text) => Buffer.from(text)))
  const sorter = new ExternalSorter({
    memoryBytes: 256 * 1024,
    directory: tmpdir(),
    name: 'gate-records-test',
    hasCounts: false,
  })
  await sortRecords(gate, sorter, bench.context({ input: null }))
  const sorted = sorter.finish()
  const keys: string[] = []
  const sink = {
    key: (bytes: Uint8Array, from: number, to: number) => {
      keys.push(Buffer.from(bytes.slice(from, to)).toString())
    },
    end: () => undefined,
  }
  while (!sorted.isAtEnd) sorted.next(sink)
  sorter.close()
  expect(keys).toEqual(['a', 'bbb', 'cc'])
  expect(bench.progress).toEqual([6])
})
