import { expect, test } from 'vitest'
import { encodeKeys } from '../../../client/manager/key-columns.ts'
import { ClusterState, jobId, key, reported } from '../../support/cluster-state.ts'

async function committed(count: number): Promise<{
  state: ClusterState
  worker: ReturnType<ClusterState['register']>
  keys: ReturnType<typeof key>[]
}> {
  const state = new ClusterState()
  const worker = state.register('w1')
  await state.clock.advance(6000)
  state.registerJob()
  const keys = Array.from({ length: count }, (_, index) => key(index))
  state.allocate(keys)
  state.tell(worker, [reported(keys, 'committed')])
  return { state, worker, keys }
}

test('commits are told until they were seen', async () => {
  const { state } = await committed(2)
  const job = state.cluster.job(jobId)
  expect(job.hasSomethingToSay).toBe(true)
  const told = [{ type: 'committed', news: 1, dataSets: [{ partitionIndices: [0, 1] }] }]
  expect(state.beat()).toMatchObject(told)
  expect(job.hasSomethingToSay).toBe(false)
  expect(state.beat()).toMatchObject(told)
  expect(state.beat({ newsSeen: 1 })).toEqual([])
})

test('a commit that was not told yet says nothing of the partition that takes the place of a released one', async () => {
  const { state, worker, keys } = await committed(2)
  const job = state.cluster.job(jobId)
  const told = state.beat()
  state.cluster.jobLists.releaseKeys(job, encodeKeys(keys.slice(0, 1)))
  state.tell(worker, [reported(keys.slice(0, 1), 'released')])
  state.allocate([key(7)])
  expect(told).toMatchObject([{ dataSets: [{ partitionIndices: [0, 1] }] }])
  expect(state.beat()).toMatchObject([{ news: 1, dataSets: [{ partitionIndices: [1] }] }])
  state.tell(worker, [reported([key(7)], 'committed')])
  state.cluster.jobLists.releaseKeys(job, encodeKeys([key(7)]))
  state.tell(worker, [reported([key(7)], 'released')])
  state.allocate([key(8)])
  expect(state.beat({ newsSeen: 1 })).toEqual([])
})

test('a commit that an earlier client was told is told to the one that does not know of it', async () => {
  const { state, keys } = await committed(2)
  state.beat()
  const now = { nowMs: state.clock.nowMs(), wallMs: 2 }
  state.cluster.jobLists.register(jobId, { clientId: 'later', takeOver: true }, now)
  const [first = key(0), second = key(1)] = keys
  state.list([
    { key: first, worker: 'w1' },
    { key: second, worker: 'w1', isCommitted: true },
  ])
  expect(state.beat()).toMatchObject([{ type: 'committed', dataSets: [{ partitionIndices: [0] }] }])
})

test('lost partitions are told until the list no longer has them', async () => {
  const { state, worker, keys } = await committed(2)
  state.beat({ newsSeen: 1 })
  state.beat({ newsSeen: 1 })
  state.tell(worker, [reported(keys, 'lost', { cause: 'disk-failed' })])
  const told = [
    { type: 'lost', groups: [{ workerId: 'w1', cause: 'disk-failed', partitionIndices: [0, 1] }] },
  ]
  expect(state.cluster.job(jobId).hasSomethingToSay).toBe(true)
  expect(state.beat({ newsSeen: 1 })).toMatchObject(told)
  expect(state.cluster.job(jobId).hasSomethingToSay).toBe(false)
  expect(state.beat({ newsSeen: 1 })).toMatchObject(told)
  expect(state.beat({ newsSeen: 1, sequence: 1, dropped: encodeKeys(keys) })).toEqual([])
  expect(state.state(key(0))).toBe('gone')
})

test('what is asked about is released only if the next heartbeat does not claim it', async () => {
  const { state, worker } = await committed(1)
  const zombies = [key(0, 'z_1'), key(0, 'z_2')]
  state.tell(worker, [reported(zombies, 'committed')])
  const commands = state.beat({ newsSeen: 1 })
  expect(commands).toMatchObject([{ type: 'asked', question: 1 }, { type: 'committed' }])
  expect(worker.commands.isEmpty).toBe(true)
  const claimed = encodeKeys(zombies.slice(0, 1))
  state.beat({ newsSeen: 1, sequence: 1, answered: 1, claimed })
  expect(state.state(key(0, 'z_1'))).toBe('committed')
  expect(state.state(key(0, 'z_2'))).toBe('releasing')
  expect(state.commandsFor(worker)).toEqual(['release z_2'])
})

test('a question is asked again until it is answered', async () => {
  const { state, worker } = await committed(1)
  state.tell(worker, [reported([key(0, 'z')], 'committed')])
  expect(state.beat()).toMatchObject([{ type: 'asked', question: 1 }, {}])
  expect(state.beat()).toMatchObject([{ type: 'asked', question: 1 }, {}])
  expect(state.beat({ answered: 7 })).toMatchObject([{ type: 'asked', question: 1 }, {}])
  expect(state.beat({ answered: 1, newsSeen: 1 })).toEqual([])
})

test('a gap in the changes asks for the list, a repeated change counts once', async () => {
  const { state } = await committed(2)
  const dropped = encodeKeys([key(0)])
  expect(state.beat({ sequence: 1, dropped })).not.toBe('resync')
  expect(state.beat({ sequence: 1, dropped: encodeKeys([key(1)]) })).not.toBe('resync')
  expect(state.state(key(1))).toBe('committed')
  expect(state.beat({ sequence: 3, dropped })).toBe('resync')
  expect(state.beat()).toBe('resync')
  state.list([{ key: key(1), worker: 'w1' }])
  expect(state.beat({ sequence: 0 })).not.toBe('resync')
})
