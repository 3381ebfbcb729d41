import { describe, expect, it } from 'vitest'
import type { Clock } from '../../client/common/clock.ts'
import { EventLoopLag } from '../../shuffle-worker/event-loop-lag.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

describe('event loop lag', () => {
  it('keeps the worst for one to two minutes', async () => {
    const clock = new VirtualClock()
    let lateMs = 0
    // A clock whose timers run late, as they do on a loop that is held up.
    const lateClock: Clock = {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      setImmediate: (callback) => clock.setImmediate(callback),
      setTimer: (delayMs, callback) => clock.setTimer(delayMs + lateMs, callback),
    }
    const lag = new EventLoopLag(lateClock)
    lag.start()
    await clock.advance(10_000)
    expect(lag.worstMs).toBe(0)
    lateMs = 300
    await clock.advance(1500)
    lateMs = 0
    await clock.advance(30_000)
    expect(lag.worstMs).toBe(300)
    await clock.advance(180_000)
    expect(lag.worstMs).toBe(0)
    lag.stop()
    expect(clock.timerCount).toBe(0)
  })
})
