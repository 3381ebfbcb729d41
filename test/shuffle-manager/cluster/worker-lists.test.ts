import { expect, test } from 'vitest'
import { parseJobId } from '../../../client/common/ids.ts'
import {
  ClusterState,
  healthyDirectory,
  jobId,
  key,
  reported,
} from '../../support/cluster-state.ts'

async function allocated(
  count: number,
): Promise<{ state: ClusterState; worker: ReturnType<ClusterState['register']> }> {
  const state = new ClusterState()
  const worker = state.register('w1')
  await state.clock.advance(6000)
  state.registerJob()
  state.allocate(Array.from({ length: count }, (_, index) => key(index)))
  return { state, worker }
}

test('a delta with a gap is not taken, a repeated one is taken once', async () => {
  const { state, worker } = await allocated(2)
  expect(state.tell(worker, [reported([key(0)], 'committed')], 2)).toBe(false)
  expect(state.state(key(0))).toBe('allocated')
  expect(state.tell(worker, [reported([key(0)], 'committed')], 1)).toBe(true)
  expect(state.tell(worker, [reported([key(1)], 'committed')], 1)).toBe(true)
  expect(state.state(key(1))).toBe('allocated')
})

test('a heartbeat of another registration or epoch asks for the list', async () => {
  const { state, worker } = await allocated(1)
  const beat = { waitMs: 0, sequence: 0, commandsSeen: 0, registration: worker.registration }
  const lists = state.cluster.workerLists
  expect(lists.heartbeat(worker, { ...beat, workerEpoch: 1 }, 0)).toBe(true)
  expect(lists.heartbeat(worker, { ...beat, workerEpoch: 2 }, 0)).toBe(false)
  expect(lists.heartbeat(worker, { ...beat, workerEpoch: 1, registration: 'x' }, 0)).toBe(false)
})

test('a list is judged when its last page is in, not before', async () => {
  const { state, worker } = await allocated(2)
  state.tell(worker, [reported([key(0), key(1)], 'committed')])
  const again = { registration: 'again' }
  state.register('w1', [reported([key(0)], 'committed')], { ...again, page: 0, last: false })
  expect(worker.state).toBe('registering')
  expect(state.state(key(1))).toBe('committed')
  state.register('w1', [], { ...again, page: 1, last: true })
  expect(worker.state).toBe('alive')
  expect(state.state(key(0))).toBe('committed')
  expect(state.state(key(1))).toBe('lost')
})

test('a page that is repeated is fine, one out of order begins anew', () => {
  const state = new ClusterState()
  const page = (number: number) =>
    state.register('w1', [], { registration: 'r', page: number, last: false })
  page(0)
  page(1)
  page(1)
  expect(() => page(3)).toThrow(/begin again/)
  expect(() => state.register('w1', [], { registration: 'other', page: 2 })).toThrow(/begin again/)
})

test('a registration that arrives late, after its repetition, is not taken for what the worker has now', async () => {
  const { state, worker } = await allocated(2)
  const first = { registration: 'first', number: 1 }
  state.register('w1', [], first)
  state.tell(worker, [reported([key(0)], 'committed')])
  state.register('w1', [], first)
  expect([worker.state, state.state(key(0)), worker.sequence]).toEqual(['alive', 'committed', 1])

  const second = { registration: 'second', number: 2 }
  state.register('w1', [reported([key(0)], 'committed')], { ...second, last: false })
  expect(() => state.register('w1', [], first)).toThrow(/begin again/)
  state.register('w1', [reported([key(1)], 'committed')], { ...second, page: 1 })
  expect(() => state.register('w1', [], first)).toThrow(/begin again/)
  expect([state.state(key(0)), state.state(key(1))]).toEqual(['committed', 'committed'])
})

test('a worker may hold more jobs than clients may begin: its list is taken as it is', () => {
  const state = new ClusterState({ jobsMax: 1 })
  const { jobs, jobLists } = state.cluster
  state.registerJob()
  const of = (name: string) => ({ ...reported([key(0)], 'committed'), jobId: name })
  const worker = state.register('w1', [of('orphan-1'), reported([key(1)], 'committed')])
  expect(worker.state).toBe('alive')
  expect(state.tell(worker, [of('orphan-2'), reported([key(2)], 'committed')])).toBe(true)
  expect([state.state(key(1)), state.state(key(2)), jobs.size]).toEqual([
    'committed',
    'committed',
    3,
  ])
  const now = { nowMs: 0, wallMs: 1 }
  const begin = () => jobLists.register(parseJobId('new'), { clientId: 'a' }, now)
  expect(begin).toThrow(/jobs-max/)
  expect(jobLists.register(parseJobId('orphan-1'), { clientId: 'a' }, now)).toBeGreaterThan(0)
})

test('a heartbeat that comes after the last word of a worker does not bring it back', () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  const { workerEpoch, registration } = worker
  const beat = { workerEpoch, registration, waitMs: 0, sequence: 0, commandsSeen: 0 }
  const { workerLists } = state.cluster
  workerLists.heartbeat(worker, { ...beat, leaving: 'for-a-while' }, 0)
  workerLists.heartbeat(worker, beat, 0)
  expect(worker.state).toBe('suspect')
  expect(state.eventTypes()).not.toContain('worker-back')
  state.register('w1', [], { workerEpoch: 2 })
  expect([worker.state, worker.isChosen]).toEqual(['alive', true])
})

test('the numbers of registrations begin anew with each start of a worker', () => {
  const state = new ClusterState()
  const worker = state.register('w1', [], { registration: 'first', number: 9 })
  state.register('w1', [], { workerEpoch: 2, registration: 'second', number: 1 })
  expect(worker).toMatchObject({ state: 'alive', registration: 'second' })
})

test('pages of a worker that fell silent between them do not make its list complete', () => {
  const state = new ClusterState()
  const pages = { registration: 'r', last: false }
  const worker = state.register('w1', [reported([key(0)], 'committed')], pages)
  state.cluster.workerLists.workerLost(worker, 'the worker is silent')
  expect(() => state.register('w1', [], { ...pages, page: 1, last: true })).toThrow(/begin again/)
  expect(worker.state).toBe('lost')
})

test('a lower worker epoch is refused', () => {
  const state = new ClusterState()
  state.register('w1', [], { workerEpoch: 5 })
  expect(() => state.register('w1', [], { workerEpoch: 4 })).toThrow(/two processes/)
})

test('an allocation that was not opened is not lost with a restart of its worker', async () => {
  const { state } = await allocated(1)
  state.register('w1', [], { registration: 'again', workerEpoch: 2 })
  expect(state.state(key(0))).toBe('allocated')
})

test('a lost worker loses what was committed there, not what was never opened', async () => {
  const { state, worker } = await allocated(2)
  state.tell(worker, [reported([key(0)], 'committed')])
  state.cluster.workerLists.workerLost(worker, 'test')
  expect(state.state(key(0))).toBe('lost')
  expect(state.state(key(1))).toBe('allocated')
})

test('one that leaves for ever is lost at once, one that leaves for a while is not', async () => {
  const { state, worker } = await allocated(1)
  state.tell(worker, [reported([key(0)], 'committed')])
  const beat = {
    workerEpoch: 1,
    registration: worker.registration,
    waitMs: 0,
    sequence: worker.sequence,
    commandsSeen: 0,
  }
  state.cluster.workerLists.heartbeat(worker, { ...beat, leaving: 'for-a-while' }, 0)
  expect(worker.state).toBe('suspect')
  expect(state.state(key(0))).toBe('committed')
  state.cluster.workerLists.heartbeat(worker, { ...beat, leaving: 'for-ever' }, 0)
  expect(worker.state).toBe('lost')
  expect(state.state(key(0))).toBe('lost')
})

test('the event of a worker that is back says for how long it was silent', () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  worker.state = 'suspect'
  worker.heardMs -= 20_000
  state.tell(worker, [])
  const { events } = state.cluster.events.list({ after: 0, limit: 10 })
  expect(events.at(-1)).toMatchObject({ type: 'worker-back', silentMs: 20_000 })
})

test('what a worker released by itself counts as lost where it is wanted', async () => {
  const { state, worker } = await allocated(1)
  state.tell(worker, [reported([key(0)], 'committed')])
  state.tell(worker, [reported([key(0)], 'released')])
  expect(state.state(key(0))).toBe('lost')
  expect(state.commandsFor(worker)).toEqual(['confirm-released a_0'])
})

test('a partition of an unknown job makes the job, which is kept for the job timeout', async () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0)], 'committed')])
  expect(state.cluster.job(jobId).state).toBe('unclaimed')
  state.cluster.polls.close()
  state.cluster.start()
  for (let beats = 0; beats < 130; beats++) {
    await state.clock.advance(5000)
    state.tell(worker, [])
  }
  expect(state.commandsFor(worker)).toEqual(['release a_0'])
  expect(state.eventTypes()).toContain('job-expired')
  state.tell(worker, [reported([key(0)], 'released')])
  expect(state.cluster.jobs.size).toBe(0)
  state.cluster.close()
})

test('a loss that is reported before the list of the job is known of is told when it comes', () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  state.tell(worker, [reported([key(0)], 'lost', { cause: 'disk-failed' })])
  const now = { nowMs: 0, wallMs: 1 }
  state.cluster.jobLists.register(jobId, { clientId: 'client' }, now)
  expect(state.cluster.job(jobId).lost.size).toBe(0)
  state.list([{ key: key(0), worker: 'w1' }])
  expect(state.cluster.job(jobId).lost.size).toBe(1)
})

test('changes of a disk become events', () => {
  const state = new ClusterState()
  state.register('w1', [], { directories: [{ ...healthyDirectory, health: 'suspect' }] })
  state.register('w1', [], { registration: 'again', directories: [healthyDirectory] })
  expect(state.eventTypes()).toEqual([
    'disk-health',
    'worker-joined',
    'disk-health',
    'worker-joined',
  ])
})

test('what an earlier manager allocated at a worker that is lost now is lost: its commit may have gone unheard', async () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1' }])
  state.register('w1', [], { registration: 'again' })
  expect(state.state(key(0))).toBe('allocated')
  state.cluster.workerLists.workerLost(worker, 'the worker is silent')
  expect(state.state(key(0))).toBe('lost')
  state.list([
    { key: key(0), worker: 'w1' },
    { key: key(1), worker: 'w1' },
  ])
  expect([state.state(key(0)), state.state(key(1))]).toEqual(['lost', 'lost'])
  await state.clock.settle()
})
