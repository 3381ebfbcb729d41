import { expect, test } from 'vitest'
import { WorkerCommands, groupKeys } from '../../../shuffle-manager/cluster/worker-commands.ts'
import { jobId, key } from '../../support/cluster-state.ts'

const keyOf = (ref: number) => (ref < 100 ? { jobId, ...key(ref) } : undefined)

test('a batch is repeated until its number was seen', () => {
  const commands = new WorkerCommands()
  commands.releases.add(1)
  const first = commands.next(keyOf)
  commands.releases.add(2)
  expect(commands.next(keyOf)).toBe(first)
  commands.seen(first.number)
  expect(commands.isEmpty).toBe(false)
  const second = commands.next(keyOf)
  expect(second.number).toBe(first.number + 1)
  commands.seen(second.number)
  expect(commands.isEmpty).toBe(true)
  expect(commands.next(keyOf)).toEqual({ number: second.number, commands: [] })
})

test('rows that are gone are left out', () => {
  const commands = new WorkerCommands()
  commands.releases.add(500)
  expect(commands.next(keyOf).commands).toEqual([])
  expect(commands.isEmpty).toBe(true)
})

test('releases, strays and confirmations go out together, in bounded batches', () => {
  const commands = new WorkerCommands()
  for (let index = 0; index < 12_000; index++) commands.confirm({ jobId, ...key(index) })
  commands.releaseStray({ jobId, ...key(7) })
  const sizes: number[] = []
  while (!commands.isEmpty) {
    const batch = commands.next(keyOf)
    commands.seen(batch.number)
    const groups = batch.commands
      .flatMap((command) => (command.type === 'service' ? [] : command.jobs))
      .flatMap((job) => job.dataSets)
    sizes.push(groups.reduce((sum, group) => sum + group.attempts.length, 0))
  }
  expect(sizes).toEqual([5001, 5000, 2000])
})

test('a new registration forgets what was to be done', () => {
  const commands = new WorkerCommands()
  commands.releases.add(1)
  commands.next(keyOf)
  commands.confirm({ jobId, ...key(1) })
  commands.reset()
  expect(commands.isEmpty).toBe(true)
})

test('what people want of the worker goes out once a batch, and again until it was seen', () => {
  const commands = new WorkerCommands()
  const service = { state: 'draining', reason: 'r', number: 1 } as const
  commands.service = service
  expect(commands.isEmpty).toBe(false)
  const first = commands.next(keyOf)
  expect(first.commands).toEqual([{ type: 'service', service }])
  expect(commands.next(keyOf)).toBe(first)
  commands.seen(first.number)
  expect(commands.isEmpty).toBe(true)
})

test('keys are grouped by job and data set', () => {
  const groups = groupKeys([
    { jobId, ...key(1, 'a_1', 'd1') },
    { jobId, ...key(2, 'a_2', 'd2') },
    { jobId, ...key(3, 'a_3', 'd1') },
  ])
  expect(groups).toEqual([
    {
      jobId,
      dataSets: [
        { dataSetId: 'd1', attemptPrefix: 'a_', partitionIndices: [1, 3], attempts: ['1', '3'] },
        { dataSetId: 'd2', attemptPrefix: 'a_2', partitionIndices: [2], attempts: [''] },
      ],
    },
  ])
})
