import { describe, expect, test } from 'vitest'
import { sleep } from '../../client/common/clock.ts'
import { VirtualClock } from './virtual-clock.ts'
import { VirtualRandom } from './virtual-random.ts'

test('timers run in the order of their time, then of their making', async () => {
  const clock = new VirtualClock()
  const ran: string[] = []
  clock.setTimer(20, () => ran.push(`late at ${String(clock.nowMs())}`))
  clock.setTimer(10, () => ran.push(`first at ${String(clock.nowMs())}`))
  clock.setTimer(10, () => ran.push(`second at ${String(clock.nowMs())}`))
  clock.setImmediate(() => ran.push(`at once at ${String(clock.nowMs())}`))
  await clock.advance(15)
  expect(ran).toEqual(['at once at 0', 'first at 10', 'second at 10'])
  expect(clock.nowMs()).toBe(15)
  await clock.advance(5)
  expect(ran.at(-1)).toBe('late at 20')
})

test('many timers in any order run sorted', async () => {
  const clock = new VirtualClock()
  const random = new VirtualRandom(1)
  const ran: number[] = []
  for (let count = 0; count < 2000; count += 1) {
    const timer = clock.setTimer(random.integer(500), () => ran.push(clock.nowMs()))
    if (random.chance(0.3)) timer.cancel()
  }
  await clock.advance(1000)
  expect(ran).toEqual([...ran].sort((a, b) => a - b))
  expect(clock.timerCount).toBe(0)
  expect(clock.eventCount).toBe(0)
})

test('a cancelled timer never runs and is no longer counted', async () => {
  const clock = new VirtualClock()
  const timer = clock.setTimer(10, () => {
    throw new Error('ran')
  })
  expect(clock.timerCount).toBe(1)
  timer.cancel()
  timer.cancel()
  expect(clock.timerCount).toBe(0)
  await clock.advance(100)
  let ran = 0
  const other = clock.setTimer(1, () => (ran += 1))
  await clock.advance(1)
  other.cancel()
  expect([ran, clock.timerCount, clock.eventCount]).toEqual([1, 0, 0])
})

test('what a timer sets going by promises is over before the next event', async () => {
  const clock = new VirtualClock()
  const ran: string[] = []
  const work = async () => {
    for (let step = 0; step < 50; step += 1) await Promise.resolve()
    ran.push('work')
  }
  clock.setTimer(1, () => void work())
  clock.setTimer(1, () => ran.push('next'))
  await clock.advance(1)
  expect(ran).toEqual(['work', 'next'])
})

test('timers set by timers run within the same advance', async () => {
  const clock = new VirtualClock()
  let count = 0
  const again = () => {
    count += 1
    clock.setTimer(10, again)
  }
  again()
  await clock.advance(1000)
  expect(count).toBe(101)
})

test('drive gives the outcome of a promise and stops there', async () => {
  const clock = new VirtualClock()
  clock.setTimer(5000, () => undefined)
  const slept = sleep(clock, 1000).then(() => clock.nowMs())
  expect(await clock.drive(slept)).toBe(1000)
  await expect(clock.drive(Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(clock.timerCount).toBe(1)
})

test('a promise that nothing will settle is an error, at once or after its time', async () => {
  const clock = new VirtualClock()
  const never = new Promise<void>(() => undefined)
  await expect(clock.drive(never)).rejects.toThrow(/stays pending/)
  const again = () => {
    clock.setTimer(1000, again)
  }
  again()
  await expect(clock.drive(never, { withinMs: 10_000 })).rejects.toThrow(/10000 ms/)
})

test('wall time goes with monotonic time', async () => {
  const clock = new VirtualClock({ startWallMs: 1_000_000 })
  await clock.advance(1500)
  expect(clock.wallMs()).toBe(1_001_500)
})

test('a delay that is no number of milliseconds is refused', () => {
  const clock = new VirtualClock()
  for (const delay of [-1, NaN]) {
    expect(() => clock.setTimer(delay, () => undefined)).toThrow(RangeError)
  }
})

describe('sleep', () => {
  test('ends early with the reason of its signal and leaves no timer', async () => {
    const clock = new VirtualClock()
    const controller = new AbortController()
    const sleeping = sleep(clock, 1000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(clock.drive(sleeping)).rejects.toThrow('enough')
    expect(clock.timerCount).toBe(0)
    await expect(clock.drive(sleep(clock, 1000, controller.signal))).rejects.toThrow('enough')
  })
})
