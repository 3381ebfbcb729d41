import { expect, test } from 'vitest'
import { realClock, sleep } from '../../../client/common/clock.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

test('the real clock runs timers after their delay and immediates before them', async () => {
  const ran: string[] = []
  const startMs = realClock.nowMs()
  await new Promise<void>((resolve) => {
    realClock.setTimer(20, () => {
      ran.push('timer')
      resolve()
    })
    realClock.setImmediate(() => ran.push('immediate'))
  })
  expect(ran).toEqual(['immediate', 'timer'])
  // Node counts in whole milliseconds of a loop that may have begun one earlier.
  expect(realClock.nowMs() - startMs).toBeGreaterThanOrEqual(19)
  expect(Math.abs(realClock.wallMs() - Date.now())).toBeLessThan(60_000)
})

test('what is cancelled on the real clock does not run, cancelled twice or not', async () => {
  let ran = 0
  const timer = realClock.setTimer(1, () => (ran += 1))
  const immediate = realClock.setImmediate(() => (ran += 1))
  for (const one of [timer, immediate, timer, immediate]) one.cancel()
  await sleep(realClock, 20)
  expect(ran).toBe(0)
})

test('sleep resolves when its time has passed', async () => {
  const clock = new VirtualClock()
  let isDone = false
  void sleep(clock, 100).then(() => {
    isDone = true
  })
  await clock.advance(99)
  expect(isDone).toBe(false)
  await clock.advance(1)
  expect(isDone).toBe(true)
})

test('sleep rejects with the reason of its signal, before and during, and leaves no timer', async () => {
  const clock = new VirtualClock()
  const controller = new AbortController()
  const sleeping = sleep(clock, 100, controller.signal)
  expect(clock.timerCount).toBe(1)
  controller.abort(new Error('woken'))
  await expect(sleeping).rejects.toThrow('woken')
  await expect(sleep(clock, 100, controller.signal)).rejects.toThrow('woken')
  expect(clock.timerCount).toBe(0)
})
