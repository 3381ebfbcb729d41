import { describe, expect, it } from 'vitest'
import { RegionTurns, turnBytes } from '../../../shuffle-worker/write/region-turns.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function make() {
  const clock = new VirtualClock()
  return { clock, turns: new RegionTurns({ clock, idleMs: 1000 }) }
}

describe('region turns', () => {
  it('gives the turn to one region at a time, in the order they asked', async () => {
    const { clock, turns } = make()
    const order: string[] = []
    const [a, b, c] = [turns.enter(), turns.enter(), turns.enter()]
    for (const [name, turn] of [
      ['a', a],
      ['c', c],
      ['b', b],
    ] as const) {
      void turn.acquire().then(() => order.push(name))
    }
    await clock.settle()
    expect(order).toEqual(['a'])
    a.leave()
    await clock.settle()
    expect(order).toEqual(['a', 'c'])
    c.leave()
    await clock.settle()
    expect(order).toEqual(['a', 'c', 'b'])
    b.leave()
    expect(clock.timerCount).toBe(0)
  })

  it('leaves the turn with its owner between writes that follow soon', async () => {
    const { clock, turns } = make()
    const [a, b] = [turns.enter(), turns.enter()]
    expect(await a.acquire()).toBe(true)
    const waiting = b.acquire()
    a.wrote(1000)
    await clock.advance(900)
    expect(await a.acquire()).toBe(true)
    a.wrote(1000)
    a.leave()
    expect(await waiting).toBe(true)
  })

  it('takes the turn from an owner that gives nothing for a second while another waits', async () => {
    const { clock, turns } = make()
    const [a, b] = [turns.enter(), turns.enter()]
    await a.acquire()
    a.wrote(1000)
    await clock.advance(5000)
    const waiting = b.acquire()
    await clock.advance(1000)
    expect(await waiting).toBe(true)
    const again = a.acquire()
    expect(turns.waitingRegions).toBe(1)
    b.leave()
    expect(await again).toBe(true)
    a.leave()
    expect(clock.timerCount).toBe(0)
  })

  it('does not take the turn from an owner that is writing, however long', async () => {
    const { clock, turns } = make()
    const [a, b] = [turns.enter(), turns.enter()]
    await a.acquire()
    let hasTurn = false
    void b.acquire().then(() => {
      hasTurn = true
    })
    await clock.advance(60_000)
    expect(hasTurn).toBe(false)
    a.leave()
    await clock.settle()
    expect(hasTurn).toBe(true)
  })

  describe('with a sweep', () => {
    /** All ask at once; the owner of each turn writes so much, or sweeps, and leaves. */
    async function orderOf(regionBytes: readonly number[], sweeps: number): Promise<string> {
      const { clock, turns } = make()
      let order = ''
      const sweepOnce = async () => {
        const sweep = turns.enterSweep()
        await sweep.acquire()
        order += 's'
        sweep.leave()
      }
      const sweeping = (async () => {
        for (let count = 0; count < sweeps; count++) await sweepOnce()
      })()
      const writing = regionBytes.map(async (bytes) => {
        const turn = turns.enter()
        await turn.acquire()
        order += 'w'
        await new Promise<void>((resolve) => clock.schedule(100, resolve))
        turn.wrote(bytes)
        turn.leave()
      })
      await clock.drive(Promise.all([sweeping, ...writing]))
      expect(clock.timerCount).toBe(0)
      return order
    }

    it('changes sides after each region that is large', async () => {
      const large = turnBytes + 1
      expect(await orderOf([large, large, large, large], 4)).toBe('swswswsw')
    })

    it('writes small regions one after the other until they make a turn', async () => {
      const small = turnBytes / 4
      expect(
        await orderOf(
          Array.from({ length: 9 }, () => small),
          4,
        ),
      ).toBe('swwwwswwwwsws')
    })

    it('gives the sweep what a client did not use of its turn', async () => {
      const { clock, turns } = make()
      const [idle, next] = [turns.enter(), turns.enter()]
      await idle.acquire()
      idle.wrote(1000)
      let order = ''
      void next.acquire().then(() => (order += 'w'))
      const sweep = turns.enterSweep()
      void sweep.acquire().then(() => (order += 's'))
      await clock.advance(1000)
      expect(order).toBe('s')
      sweep.leave()
      await clock.settle()
      expect(order).toBe('sw')
      next.leave()
      expect(turns.writtenBytes).toBe(1000)
    })
  })

  it('answers false to a region that left while it waited, or had left before', async () => {
    const { turns } = make()
    const [a, b] = [turns.enter(), turns.enter()]
    await a.acquire()
    const waiting = b.acquire()
    b.leave()
    b.leave()
    expect(await waiting).toBe(false)
    expect(await b.acquire()).toBe(false)
    a.leave()
  })
})
