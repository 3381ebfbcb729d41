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
  }).toThrow(/stop one of the two/)
  expect(state.eventTypes()).toEqual(['manager-superseded'])
})

test('it is ready again when nobody speaks of the other any more', async () => {
  const state = new ClusterState()
  await state.clock.advance(6000)
  state.cluster.noteEpoch(5000)
  for (let beats = 0; beats < 10; beats++) {
    await state.clock.advance(5000)
    state.cluster.noteEpoch(5000)
    expect(state.cluster.unreadyReason).toMatch(/higher epoch 5000/)
  }
  await state.clock.advance(15_000)
  expect(state.cluster.unreadyReason).toBeUndefined()
  expect(state.eventTypes()).toEqual(['manager-superseded'])
})

test('an epoch that no manager can have made is refused and changes nothing', async () => {
  const state = new ClusterState()
  await state.clock.advance(6000)
  for (const epoch of [Number.MAX_SAFE_INTEGER, state.clock.wallMs() + 25 * 3600 * 1000]) {
    expect(() => {
      state.cluster.noteEpoch(epoch)
    }).toThrow(/a day in the future.*compare the clocks/)
  }
  expect(state.cluster.unreadyReason).toBeUndefined()
  expect(state.eventTypes()).toEqual([])
})
