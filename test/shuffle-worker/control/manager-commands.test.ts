import { expect, test } from 'vitest'
import { parseJobId, partitionKeyText } from '../../../client/common/ids.ts'
import type { WorkerCommand } from '../../../client/manager/api-workers.ts'
import { encodeKeys } from '../../../client/manager/key-columns.ts'
import { execute } from '../../../shuffle-worker/control/manager-commands.ts'
import { key } from '../../support/cluster-state.ts'
import { FakeStore } from '../../support/control-plane.ts'

const refuse = () => {
  throw new Error('nobody asked for that')
}

test('what people want of the worker is handed on', () => {
  const service = { state: 'excluded', reason: 'r', number: 4 } as const
  const seen: unknown[] = []
  execute([{ type: 'service', service }], new FakeStore('w'), (record) => seen.push(record))
  expect(seen).toEqual([service])
})

test('commands are done on the store, key by key, job by job', () => {
  const store = new FakeStore('w')
  const jobs = ['j1', 'j2'].map((jobId, index) => ({ jobId, dataSets: encodeKeys([key(index)]) }))
  const names = [0, 1].map((index) =>
    partitionKeyText({ jobId: parseJobId(`j${String(index + 1)}`), ...key(index) }),
  )
  expect(execute([{ type: 'release', jobs }], store, refuse)).toEqual([])
  expect(store.releaseCommands).toEqual(names)
  expect(execute([{ type: 'confirm-released', jobs }], store, refuse)).toEqual([])
  expect([...store.partitions]).toEqual([])
})

test('what is not known is skipped and answered', () => {
  const future = { type: 'from-the-future' } as unknown as WorkerCommand
  expect(execute([future], new FakeStore('w'), refuse)).toEqual(['from-the-future'])
})
