import { expect, test } from 'vitest'
import { ClusterState, jobId, key, reported } from '../../support/cluster-state.ts'
import type { ServiceRecord } from '../../../client/manager/schemas.ts'

const none = { workerEpoch: 1, waitMs: 0, commandsSeen: 0 }

function two(): ClusterState {
  const state = new ClusterState()
  state.register('w1')
  state.register('w2')
  state.registerJob()
  return state
}

const worker = (state: ClusterState, index: number) => state.cluster.workers.at(index)

/** The next heartbeat, with what the worker says of itself. */
function beat(state: ClusterState, index: number, service: ServiceRecord): void {
  const one = worker(state, index)
  const { registration, sequence } = one
  state.cluster.workerLists.heartbeat(one, { ...none, registration, sequence, service }, 0)
}

test.each(['excluded', 'draining'] as const)(
  'a worker that is %s is not chosen, from the very call on',
  (wanted) => {
    const state = two()
    state.cluster.workerService.ask(worker(state, 0), { state: wanted, reason: 'r' })
    expect(state.allocate([key(0), key(1), key(2)])).toEqual(['w2', 'w2', 'w2'])
    // What the worker said before it heard of it changes nothing.
    beat(state, 0, { state: 'serving', reason: '', number: 0 })
    expect(state.allocate([key(3)])).toEqual(['w2'])
    expect(state.commandsFor(worker(state, 0))).toEqual([`service ${wanted}`])
    expect(worker(state, 0).isServiceTold).toBe(false)
    beat(state, 0, { state: wanted, reason: 'r', number: 1 })
    expect(worker(state, 0).isServiceTold).toBe(true)
    expect(state.allocate([key(4)])).toEqual(['w2'])
    expect(state.eventTypes()).toContain('worker-service')
  },
)

test('a worker is chosen again once it says itself that it serves', () => {
  const state = two()
  beat(state, 0, { state: 'draining', reason: 'r', number: 5 })
  state.cluster.workerService.ask(worker(state, 0), { state: 'serving' })
  expect(state.allocate([key(0), key(1)])).toEqual(['w2', 'w2'])
  beat(state, 0, { state: 'serving', reason: '', number: 6 })
  expect(state.allocate([key(2), key(3)]).sort()).toEqual(['w1', 'w1'])
})

test('what an earlier manager was asked is told by the worker, and shows in the events', () => {
  const state = two()
  beat(state, 0, { state: 'excluded', reason: 'noisy', number: 7 })
  expect(state.allocate([key(0), key(1)])).toEqual(['w2', 'w2'])
  const { events } = state.cluster.events.list({ after: 0, limit: 100 })
  expect(events.filter(({ type }) => type === 'worker-service')).toMatchObject([
    { workerId: 'w1', state: 'excluded', reason: 'noisy', askedBy: 'worker' },
  ])
})

test('a request before the worker has said how far an earlier manager had counted is made anew', () => {
  const state = two()
  state.cluster.workerService.ask(worker(state, 0), { state: 'draining' })
  beat(state, 0, { state: 'excluded', reason: 'noisy', number: 7 })
  expect(worker(state, 0).wantedService).toEqual({ state: 'draining', reason: '', number: 8 })
  expect(state.commandsFor(worker(state, 0))).toEqual(['service draining'])
})

test('a registration anew, with the command on its way, is told again', () => {
  const state = two()
  state.cluster.workerService.ask(worker(state, 0), { state: 'draining' })
  state.commandsFor(worker(state, 0))
  state.register('w1', [], { workerEpoch: 2, service: { state: 'serving', reason: '', number: 0 } })
  expect(state.commandsFor(worker(state, 0))).toEqual(['service draining'])
})

test('a worker that was started again and has forgotten what it had done is asked again (simulation, seed 700023)', () => {
  const state = two()
  beat(state, 0, { state: 'serving', reason: 'mended', number: 2 })
  const events = state.eventTypes().length
  const draining = { state: 'draining', reason: 'disk', number: 1 } as const
  state.register('w1', [], { workerEpoch: 2, service: draining })
  expect(state.commandsFor(worker(state, 0))).toEqual(['service serving'])
  expect(worker(state, 0).wantedService).toMatchObject({ state: 'serving', number: 2 })
  expect(state.eventTypes().slice(events)).not.toContain('worker-service')
  const mended = { state: 'serving', reason: 'mended', number: 2 } as const
  state.register('w1', [], { workerEpoch: 2, service: mended })
  expect(worker(state, 0).isServiceTold).toBe(true)
  expect(state.allocate([key(0), key(1)]).sort()).toEqual(['w1', 'w2'])
})

test('the same request twice is one', () => {
  const state = two()
  state.cluster.workerService.ask(worker(state, 0), { state: 'draining', reason: 'r' })
  const events = state.eventTypes().length
  state.cluster.workerService.ask(worker(state, 0), { state: 'draining', reason: 'r' })
  expect(state.eventTypes()).toHaveLength(events)
})

test('an operator gives up a worker that is silent, and its data is lost at once', async () => {
  const state = two()
  state.allocate([key(0), key(1)])
  state.tell(worker(state, 0), [reported([key(0)], 'committed')])
  expect(() => {
    state.cluster.workerService.ask(worker(state, 0), { state: 'excluded', isLost: true })
  }).toThrow(/is alive.*stop its process first/)
  worker(state, 0).state = 'suspect'
  expect(() => {
    state.cluster.workerService.ask(worker(state, 0), { state: 'draining', isLost: true })
  }).toThrow(/excluded only/)
  state.cluster.workerService.ask(worker(state, 0), { state: 'excluded', isLost: true })
  await state.clock.settle()
  expect(state.cluster.job(jobId).counts.lost).toBe(1)
  expect(worker(state, 0).state).toBe('lost')
})
