import { beforeEach, describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import type { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { HeldPartitions } from '../../../shuffle-worker/storage/held-partitions.ts'
import { SpaceReservation } from '../../../shuffle-worker/storage/space-account.ts'
import type { StorageDirectory } from '../../../shuffle-worker/storage/storage-directory.ts'
import { WriteTarget } from '../../../shuffle-worker/storage/write-target.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openDirectory } from './support/directory-bench.ts'
import { keyOf, newLedger } from './support/store-fixture.ts'

let virtual: VirtualWorld
let directory: StorageDirectory
let ledger: MemoryLedger
let held: HeldPartitions
let space: SpaceReservation
let released: number

beforeEach(async () => {
  virtual = new VirtualWorld()
  directory = (await virtual.drive(openDirectory(virtual.main))).directory
  ledger = newLedger(virtual.main)
  held = new HeldPartitions({ bytesMax: 100 })
  released = 0
})

function newTarget(isLarge = false): WriteTarget {
  space = new SpaceReservation(directory.space)
  space.tryReserve(10_000)
  return new WriteTarget({
    directory,
    ledger,
    held,
    space,
    jobId: keyOf(1).jobId,
    smallBytesMax: 50,
    isLarge,
    sync: false,
    onFailure: () => undefined,
  })
}

const append = (target: WriteTarget, text: string) =>
  virtual.drive(target.append([Buffer.from(text)], () => (released += 1)))

const files = () => virtual.disk().filesBelow('/data/partitions')

describe('a write target', () => {
  it('holds what is small, without a file, and gives the buffers back at once', async () => {
    const target = newTarget()
    await append(target, 'abc')
    expect(released).toBe(1)
    expect(files()).toEqual([])
    expect(ledger.usedBytes('write')).toBe(3)
    const place = await virtual.drive(target.finish(Buffer.from('def')))
    expect(place).toMatchObject({ kind: 'segment', byteLength: 6 })
    expect(held.bytes).toBe(0)
    await virtual.clock.settle()
    expect(ledger.usedBytes('write')).toBe(0)
  })

  it('moves to a file, in order, when it grows', async () => {
    const target = newTarget()
    await append(target, 'abc')
    await append(target, 'd'.repeat(48))
    expect(files()).toHaveLength(1)
    const place = await virtual.drive(target.finish(Buffer.from('e')))
    expect(place).toMatchObject({ kind: 'file', byteLength: 52 })
    const content = Buffer.from(virtual.disk().contentOf(files()[0] ?? '') ?? []).toString()
    expect(content).toBe(`abc${'d'.repeat(48)}e`)
    expect(ledger.usedBytes('write')).toBe(0)
  })

  it('makes a file at once for what is known to be large', async () => {
    const target = newTarget(true)
    await append(target, 'a')
    expect(files()).toHaveLength(1)
    expect(held.count).toBe(0)
  })

  it('makes a file when the memory for held partitions is short', async () => {
    ledger.tryReserve({ purpose: 'write', bytes: ledger.partBytes('write') })
    const target = newTarget()
    await append(target, 'a')
    expect(files()).toHaveLength(1)
  })

  it.each([
    ['held', false],
    ['written', true],
  ])('lets everything go that was %s when it fails', async (_, isLarge) => {
    const target = newTarget(isLarge)
    await append(target, 'abc')
    target.fail(new ShuffleError('CANCELLED', 'enough'))
    const freed = await virtual.drive(target.discard())
    expect(freed).toBe(isLarge ? 3 : 0)
    expect(files()).toEqual([])
    expect(ledger.usedBytes('write')).toBe(0)
    await expect(append(target, 'd')).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(target.finish(Buffer.alloc(1))).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(released).toBe(2)
  })

  it('deletes what a finish still made after the failure', async () => {
    for (const isLarge of [false, true]) {
      const target = newTarget(isLarge)
      await append(target, 'abc')
      const finishing = target.finish(Buffer.from('tail'))
      target.fail(new ShuffleError('STALE_ALLOCATION', 'released'))
      await virtual.drive(Promise.allSettled([finishing, target.discard()]))
      expect(files()).toEqual([])
    }
  })
})
