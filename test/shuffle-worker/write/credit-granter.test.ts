import { describe, expect, it } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import {
  CreditGranter,
  type CreditGranterOptions,
  type RegionCredit,
} from '../../../shuffle-worker/write/credit-granter.ts'
import { CountingSource, jobId } from './support/counting-source.ts'

function make(options: Partial<CreditGranterOptions> & { readonly source: CountingSource }) {
  return new CreditGranter({
    shareBuffers: 100,
    minimumBuffers: 8,
    targetBuffers: 16,
    openRegionsMax: 100,
    isSuspended: () => false,
    ...options,
  })
}

function enter(granter: CreditGranter, neededBuffers: number) {
  const grants: number[] = []
  const credit = granter.enter({ jobId, neededBuffers, onGrant: (count) => grants.push(count) })
  return { credit, grants }
}

function takeAll(credit: RegionCredit): PooledBuffer[] {
  const taken: PooledBuffer[] = []
  for (let next = credit.take(); next !== undefined; next = credit.take()) taken.push(next)
  return taken
}

const microtasks = () => new Promise((resolve) => setImmediate(resolve))

describe('credit granter', () => {
  it('opens a region with its minimum and lets it grow while nobody waits', () => {
    const source = new CountingSource(100)
    const { credit, grants } = enter(make({ source }), 50)
    expect(grants).toEqual([8, 8])
    expect(credit.held).toBe(16)
    expect(source.used).toBe(16)
  })

  it('opens a region with all that it is likely to use, up to the first grant', () => {
    const source = new CountingSource(100)
    const granter = make({ source, firstGrantBuffers: 20, targetBuffers: 8 })
    const first = (demand: { readonly neededBuffers: number; readonly likelyBuffers: number }) => {
      const grants: number[] = []
      const credit = granter.enter({ jobId, ...demand, onGrant: (count) => grants.push(count) })
      credit.close()
      return grants
    }
    expect(first({ neededBuffers: 24, likelyBuffers: 14 })).toEqual([14])
    expect(first({ neededBuffers: 90, likelyBuffers: 60 })).toEqual([20])
    expect(first({ neededBuffers: 12, likelyBuffers: 2 })).toEqual([8])
    expect(first({ neededBuffers: 5, likelyBuffers: 6 })).toEqual([5])
    expect(source.used).toBe(0)
  })

  it('opens a region with its minimum where its first grant cannot be had', () => {
    const source = new CountingSource(10)
    const granter = make({ source, firstGrantBuffers: 20, targetBuffers: 8 })
    expect(enter(granter, 50).grants).toEqual([8])
    // Two are left: less than a minimum.
    expect(enter(granter, 50).grants).toEqual([])
    expect(granter.regionsShortOfMemory).toBe(1)
  })

  it('waits for a first grant while buffers are on their way to the disk', async () => {
    const source = new CountingSource(24)
    const granter = make({ source, firstGrantBuffers: 12, targetBuffers: 8 })
    const [first, second] = [enter(granter, 50), enter(granter, 50)]
    const third = enter(granter, 50)
    const written = takeAll(first.credit)
    takeAll(second.credit)
      .slice(0, 4)
      .forEach((buffer) => {
        buffer.recycle()
      })
    // They go to the region that has less than its minimum, or stay for the next.
    for (const buffer of written.splice(0, 8)) buffer.recycle()
    await microtasks()
    expect(third.grants).toEqual([])
    first.credit.close()
    for (const buffer of written) buffer.recycle()
    await microtasks()
    expect(third.grants).toEqual([12])
  })

  it('says how many regions wait for memory, and not those that wait for their turn', () => {
    const short = make({ source: new CountingSource(10), targetBuffers: 8 })
    for (let count = 0; count < 3; count++) enter(short, 50)
    expect([short.waitingRegions, short.regionsShortOfMemory]).toEqual([2, 2])
    const inTurn = make({ source: new CountingSource(100), openRegionsMax: 1 })
    const first = enter(inTurn, 50)
    enter(inTurn, 50)
    expect([inTurn.waitingRegions, inTurn.regionsShortOfMemory]).toEqual([1, 0])
    first.credit.close()
    expect(inTurn.regionsShortOfMemory).toBe(0)
  })

  it('grants a small region no more than it can use, and an empty one nothing', () => {
    const source = new CountingSource(100)
    const granter = make({ source })
    expect(enter(granter, 3).grants).toEqual([3])
    const empty = enter(granter, 0)
    expect(empty.grants).toEqual([])
    expect(empty.credit.isOpen).toBe(true)
  })

  it('opens regions in the order of their arrival, as many as fit', () => {
    const source = new CountingSource(20)
    const granter = make({ source, targetBuffers: 8 })
    const [first, second, third, fourth] = [50, 50, 50, 2].map((needed) => enter(granter, needed))
    expect([first, second, third, fourth].map((each) => each?.credit.isOpen)).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(granter.waitingRegions).toBe(2)
    first?.credit.close()
    expect(third?.credit.isOpen).toBe(true)
    expect(fourth?.credit.isOpen).toBe(true)
  })

  it('never holds more than the share of the disk', () => {
    const source = new CountingSource(1000)
    const granter = make({ source, shareBuffers: 20, targetBuffers: 100 })
    enter(granter, 500)
    enter(granter, 500)
    expect(granter.heldBuffers).toBeLessThanOrEqual(20)
    expect(source.used).toBe(granter.heldBuffers)
  })

  it('gives the growth of a region to those who wait, but refills its minimum first', async () => {
    const source = new CountingSource(24)
    const granter = make({ source, targetBuffers: 24 })
    const greedy = enter(granter, 100)
    expect(greedy.credit.held).toBe(24)
    const waiting = enter(granter, 100)
    expect(waiting.credit.isOpen).toBe(false)
    for (const buffer of takeAll(greedy.credit)) buffer.recycle()
    await microtasks()
    expect(greedy.credit.held).toBeGreaterThanOrEqual(8)
    expect(waiting.credit.isOpen).toBe(true)
    expect(source.used).toBe(granter.heldBuffers)
  })

  it('counts a taken buffer until it is recycled, also after the region has closed', async () => {
    const source = new CountingSource(8)
    const granter = make({ source, targetBuffers: 8 })
    const { credit } = enter(granter, 8)
    const buffers = takeAll(credit)
    expect(credit.unspent).toBe(0)
    credit.close()
    const next = enter(granter, 8)
    expect(next.credit.isOpen).toBe(false)
    for (const buffer of buffers) buffer.recycle()
    await microtasks()
    expect(next.credit.isOpen).toBe(true)
    next.credit.close()
    expect(granter.heldBuffers).toBe(0)
    expect(source.used).toBe(0)
  })

  it('gives nothing while the disk is suspect, and goes on when it is well again', () => {
    const source = new CountingSource(100)
    let isSuspect = true
    const granter = make({ source, isSuspended: () => isSuspect })
    const { credit, grants } = enter(granter, 8)
    expect(grants).toEqual([])
    isSuspect = false
    granter.distribute()
    expect(credit.isOpen).toBe(true)
  })

  it('lets only so many regions hold credit at a time', () => {
    const granter = make({ source: new CountingSource(1000), openRegionsMax: 2 })
    const regions = [1, 2, 3].map(() => enter(granter, 8))
    expect(regions.map(({ credit }) => credit.isOpen)).toEqual([true, true, false])
    expect(granter.openRegions).toBe(2)
  })

  it('says when it could not give for want of buffers', () => {
    const source = new CountingSource(4)
    const granter = make({ source })
    const { credit } = enter(granter, 8)
    expect(granter.isStarved).toBe(true)
    source.limit = 100
    granter.distribute()
    expect(credit.isOpen).toBe(true)
    expect(granter.unspentBuffers).toBe(8)
  })

  it('lets a waiting region leave', () => {
    const granter = make({ source: new CountingSource(8), targetBuffers: 8 })
    const first = enter(granter, 8)
    const second = enter(granter, 8)
    second.credit.close()
    expect(granter.waitingRegions).toBe(0)
    first.credit.close()
    expect(() => {
      first.credit.close()
    }).toThrow(/closes once/)
  })
})
