import { expect, test } from 'vitest'
import { LongPolls } from '../../../shuffle-manager/cluster/long-polls.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

test('a wait ends when it is woken, and its timer with it', async () => {
  const clock = new VirtualClock()
  const polls = new LongPolls(clock)
  const wait = polls.wait('a', 5000)
  polls.wake('b')
  expect(polls.waitingCount).toBe(1)
  polls.wake('a')
  await wait
  expect(polls.waitingCount).toBe(0)
  expect(clock.eventCount).toBe(0)
})

test('a wait ends at its deadline', async () => {
  const clock = new VirtualClock()
  const polls = new LongPolls(clock)
  await clock.drive(polls.wait('a', 5000))
  expect(clock.nowMs()).toBe(5000)
})

test('a new wait of the same name ends the old one', async () => {
  const polls = new LongPolls(new VirtualClock())
  const first = polls.wait('a', 5000)
  const second = polls.wait('a', 5000)
  await first
  expect(polls.waitingCount).toBe(1)
  polls.close()
  await second
})

test('after close nothing waits', async () => {
  const polls = new LongPolls(new VirtualClock())
  polls.close()
  await polls.wait('a', 5000)
  expect(polls.waitingCount).toBe(0)
})
