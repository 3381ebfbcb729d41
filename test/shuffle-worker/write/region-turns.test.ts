import { describe, expect, it } from 'vitest'
import { RegionTurns } from '../../../shuffle-worker/write/region-turns.ts'
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
    a.wrote()
    await clock.advance(900)
    expect(await a.acquire()).toBe(true)
    a.wrote()
    a.leave()
    expect(await waiting).toBe(true)
  })

  it('takes the turn from an owner that gives nothing for a second while another waits', async () => {
    const { clock, turns } = make()
    const [a, b] = [turns.enter(), turns.enter()]
    await a.acquire()
    a.wrote()
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
