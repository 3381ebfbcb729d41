import { expect, test } from 'vitest'
import { ClusterState } from '../../support/cluster-state.ts'

test('a manager that hears of a higher epoch is not ready, and says why', async () => {
  const state = new ClusterState()
  await state.clock.advance(6000)
  expect(state.cluster.unreadyReason).toBeUndefined()
  state.cluster.noteEpoch(900)
  expect(state.cluster.unreadyReason).toBeUndefined()
  state.cluster.noteEpoch(5000)
  expect(state.cluster.unreadyReason).toMatch(/higher epoch 5000/)
  expect(() => {
    state.cluster.checkReady()
  }).toThrow(/stop this one/)
  expect(state.eventTypes()).toEqual(['manager-superseded'])
})
