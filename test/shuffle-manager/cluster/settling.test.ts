import { expect, test } from 'vitest'
import { ClusterState, key } from '../../support/cluster-state.ts'

test('without anything known the settle time is waited for', async () => {
  const state = new ClusterState()
  state.register('w1')
  expect(state.cluster.settling.isSettled).toBe(false)
  expect(state.cluster.unreadyReason).toMatch(/waits up to 5000 ms/)
  await state.clock.advance(5000)
  expect(state.cluster.settling.isSettled).toBe(true)
  expect(state.cluster.settling.remainingMs).toBe(0)
})

test('the expected number of workers ends it', () => {
  const state = new ClusterState({ expectedWorkers: 2 })
  state.register('w1')
  expect(state.cluster.settling.isSettled).toBe(false)
  state.register('w2')
  expect(state.cluster.settling.isSettled).toBe(true)
})

test('all workers that the lists name being back ends it', () => {
  const state = new ClusterState()
  state.register('w1')
  state.registerJob()
  state.list([
    { key: key(0), worker: 'w1' },
    { key: key(1), worker: 'w2' },
  ])
  expect(state.cluster.settling.isSettled).toBe(false)
  state.register('w2')
  expect(state.cluster.settling.isSettled).toBe(true)
})

test('an allocation before that is refused with what is waited for', () => {
  const state = new ClusterState()
  expect(() => {
    state.cluster.checkReady()
  }).toThrow(/does not allocate yet/)
})
