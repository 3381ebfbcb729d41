import { describe, expect, it } from 'vitest'
import { Heartbeat } from '../../../client/protocol/heartbeat.ts'
import type { Clock } from '../../../client/common/clock.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function makeHeartbeat(clock: Clock) {
  const seen = {
    pings: 0,
    sent: 0,
    silentMs: [] as number[],
    stuckMs: [] as number[],
    frame: undefined as number | undefined,
  }
  const heartbeat = new Heartbeat({
    clock,
    intervalMs: 1_000,
    idlePingsMax: 3,
    frameUnderWay: () => seen.frame,
    sentCount: () => seen.sent,
    onPing: () => {
      seen.pings += 1
      seen.sent += 1
    },
    onIdle: (silentMs) => {
      seen.silentMs.push(silentMs)
    },
    onFrameStuck: (stuckMs) => {
      seen.stuckMs.push(stuckMs)
    },
  })
  return { heartbeat, seen }
}

/** Acts `count` times, `everyMs` apart. */
async function repeat(clock: VirtualClock, count: number, everyMs: number, act: () => void) {
  for (let done = 0; done < count; done += 1) {
    await clock.advance(everyMs)
    act()
  }
}

describe('Heartbeat', () => {
  it('pings a silent peer each interval and gives it up after three', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    await clock.advance(2_500)
    expect(seen).toMatchObject({ pings: 2, silentMs: [] })
    await clock.advance(10_000)
    expect(seen).toMatchObject({ pings: 2, silentMs: [3_000] })
    expect(clock.timerCount).toBe(0)
  })

  it('gives up a peer that sends a frame byte by byte and never ends it', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    seen.frame = 7
    await repeat(clock, 320, 100, () => {
      heartbeat.heard()
    })
    expect(seen).toMatchObject({ stuckMs: [30_000], silentMs: [] })
    expect(clock.timerCount).toBe(0)
  })

  it('lets every frame have its time', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    let heardCount = 0
    await repeat(clock, 400, 500, () => {
      heartbeat.heard()
      seen.frame = Math.floor(heardCount++ / 50)
    })
    heartbeat.stop()
    expect(seen).toMatchObject({ stuckMs: [], silentMs: [] })
  })

  it('sends no ping while both sides talk', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    await repeat(clock, 50, 300, () => {
      heartbeat.heard()
      seen.sent += 1
    })
    expect(seen.pings).toBe(0)
    heartbeat.stop()
    expect(clock.timerCount).toBe(0)
  })

  it('pings when it only listens, so that the other side hears it', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    await repeat(clock, 50, 300, () => {
      heartbeat.heard()
    })
    expect(seen.pings).toBeGreaterThan(10)
    expect(seen.silentMs).toEqual([])
    heartbeat.stop()
  })

  it('waits for a peer whose interval is longer than its own', async () => {
    const clock = new VirtualClock()
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(4_000)
    await clock.advance(11_900)
    expect(seen.silentMs).toEqual([])
    await clock.advance(200)
    expect(seen.silentMs).toEqual([12_000])
  })

  it('judges anew after its own process was late', () => {
    let now = 0
    const timers: (() => void)[] = []
    const clock: Clock = {
      nowMs: () => now,
      wallMs: () => now,
      setTimer: (_, callback) => {
        timers.push(callback)
        return { cancel: () => undefined }
      },
      setImmediate: () => ({ cancel: () => undefined }),
    }
    const { heartbeat, seen } = makeHeartbeat(clock)
    heartbeat.start(0)
    now = 60_000
    timers.shift()!()
    expect(seen.silentMs).toEqual([])
    for (const at of [61_000, 62_000, 63_000]) {
      now = at
      timers.shift()!()
    }
    expect(seen.silentMs).toEqual([3_000])
  })
})
