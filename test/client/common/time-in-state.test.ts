import { expect, test } from 'vitest'
import { addStateSums, TimeInState } from '../../../client/common/time-in-state.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

test('the sums of all states add up to the age', async () => {
  const clock = new VirtualClock()
  const time = new TimeInState(clock, ['idle', 'disk', 'socket'])
  await clock.advance(5)
  time.enter('disk')
  await clock.advance(7)
  time.enter('disk')
  await clock.advance(1)
  time.enter('socket')
  await clock.advance(20)
  time.enter('idle')
  await clock.advance(2)
  expect(time.sums()).toEqual({ idle: 7, disk: 8, socket: 20 })
  expect(time.state).toBe('idle')
})

test('the present state counts up to now', async () => {
  const clock = new VirtualClock()
  const time = new TimeInState(clock, ['idle', 'busy'])
  time.enter('busy')
  await clock.advance(3)
  expect(time.sums()).toEqual({ idle: 0, busy: 3 })
  await clock.advance(3)
  expect(time.sums()).toEqual({ idle: 0, busy: 6 })
})

test('sums of several are added state by state', () => {
  const total = { idle: 1, busy: 2 }
  addStateSums(total, { idle: 10, busy: 20 })
  expect(total).toEqual({ idle: 11, busy: 22 })
})
