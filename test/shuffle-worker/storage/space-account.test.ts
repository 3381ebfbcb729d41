import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SpaceAccount, SpaceReservation } from '../../../shuffle-worker/storage/space-account.ts'

function newAccount(freeBytes: number, minReservedBytes = 0): SpaceAccount {
  const account = new SpaceAccount({ minReservedBytes })
  account.beginSample()({ freeBytes, totalBytes: 1000 })
  return account
}

describe('the space account', () => {
  it('keeps the reserved floor for others', () => {
    const account = newAccount(500, 100)
    expect(account.availableBytes).toBe(400)
    expect(account.tryReserve(401)).toBe(false)
    expect(account.isFull).toBe(true)
  })

  it('counts at admission, not at the next sample', () => {
    const account = newAccount(100)
    expect(account.tryReserve(60)).toBe(true)
    expect(account.tryReserve(60)).toBe(false)
    account.written(50)
    expect(account.availableBytes).toBe(40)
    account.giveBack(10)
    expect(account.availableBytes).toBe(50)
  })

  it('believes the file system at a sample, but for what was written meanwhile', () => {
    const account = newAccount(100)
    account.tryReserve(40)
    account.written(30)
    const finish = account.beginSample()
    account.written(10)
    finish({ freeBytes: 65, totalBytes: 1000 })
    expect(account.availableBytes).toBe(55)
    expect(account.driftBytes).toBe(-5)
  })

  it('is full until there is twice what was refused', () => {
    const account = newAccount(100)
    account.tryReserve(90)
    expect(account.tryReserve(20)).toBe(false)
    account.giveBack(25)
    expect(account.isFull).toBe(true)
    account.giveBack(10)
    expect(account.isFull).toBe(false)
  })

  it('opens again when most of the disk is free, however much of it was refused', () => {
    const account = newAccount(1000)
    account.tryReserve(600)
    account.written(600)
    expect(account.tryReserve(900)).toBe(false)
    expect(account.isFull).toBe(true)
    account.freed(600)
    expect(account.isFull).toBe(false)
  })

  it('stays open to others when one region asks for more than any disk has', () => {
    const gibibyte = 1024 ** 3
    const account = newAccount(2 * gibibyte)
    expect(account.tryReserve(Number.MAX_SAFE_INTEGER)).toBe(false)
    expect(account.isFull).toBe(false)
    expect(account.tryReserve(1.5 * gibibyte)).toBe(true)
  })

  it('opens again with a gibibyte, however large the region was that it refused', () => {
    const gibibyte = 1024 ** 3
    const account = new SpaceAccount({ minReservedBytes: 0 })
    account.beginSample()({ freeBytes: gibibyte, totalBytes: 8 * gibibyte })
    account.tryReserve(1)
    expect(account.tryReserve(Number.MAX_SAFE_INTEGER)).toBe(false)
    expect(account.isFull).toBe(true)
    account.giveBack(1)
    expect(account.isFull).toBe(false)
  })

  it('is full when the file system says so, whatever was counted', () => {
    const account = newAccount(100)
    account.tryReserve(10)
    account.written(10)
    account.refused(30)
    expect(account.availableBytes).toBe(0)
    account.freed(50)
    expect(account.availableBytes).toBe(50)
    expect(account.isFull).toBe(true)
    account.freed(10)
    expect(account.isFull).toBe(false)
    account.refused(30)
    account.beginSample()({ freeBytes: 60, totalBytes: 1000 })
    expect(account.isFull).toBe(false)
  })

  it('has back what writes gave back, in any order', () => {
    const step = fc.record({ reserve: fc.nat(100), write: fc.nat(100), keep: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const account = newAccount(10_000)
        for (const { reserve, write, keep } of steps) {
          const space = new SpaceReservation(account)
          if (!space.tryReserve(reserve)) continue
          space.written(Math.min(write, reserve))
          space.settle()
          space.settle()
          if (!keep) account.freed(space.writtenBytes)
        }
        expect(account.reservedBytes).toBe(0)
        account.beginSample()({ freeBytes: 10_000, totalBytes: 10_000 })
        expect(account.availableBytes).toBe(10_000)
      }),
    )
  })

  it('asserts that no more is given back than was reserved', () => {
    expect(() => {
      newAccount(10).giveBack(1)
    }).toThrow(/no more space/)
  })
})
