import { beforeEach, describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import { PartitionFileWriter } from '../../../shuffle-worker/storage/partition-file-writer.ts'
import { SpaceAccount, SpaceReservation } from '../../../shuffle-worker/storage/space-account.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const layout = layoutOf('/data')
const partial = '/data/partitions/000000000001.partial'
const data = '/data/partitions/000000000001.data'

let virtual: VirtualWorld
let space: SpaceReservation
let writer: PartitionFileWriter
let released: string[]

beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory(layout.partitions))
  const account = new SpaceAccount({ minReservedBytes: 0 })
  account.beginSample()({ freeBytes: 1e9, totalBytes: 1e9 })
  space = new SpaceReservation(account)
  space.tryReserve(1e6)
  released = []
  writer = newWriter(false)
})

function newWriter(sync: boolean): PartitionFileWriter {
  return new PartitionFileWriter({
    disk: newQueuedDisk(virtual.main),
    layout,
    ordinal: 1,
    space,
    sync,
    directMemory: undefined,
  })
}

function append(text: string): Promise<void> {
  return writer.append([Buffer.from(text)], () => released.push(text))
}

describe('a partition file writer', () => {
  it('writes in order, and together what came while the disk was busy', async () => {
    const first = append('a')
    await virtual.clock.runUntil(() => virtual.disk().operationCount >= 3)
    const before = virtual.disk().operationCount
    const rest = Promise.all(['b', 'c', 'd'].map(append))
    await virtual.drive(Promise.all([first, rest]))
    expect(virtual.disk().operationCount - before).toBe(1)
    await virtual.drive(writer.commit())
    expect(Buffer.from(virtual.disk().contentOf(data) ?? []).toString()).toBe('abcd')
    expect(released).toEqual(['a', 'b', 'c', 'd'])
    expect(space.writtenBytes).toBe(4)
  })

  it('has a file under its name only after the commit', async () => {
    await virtual.drive(append('a'))
    expect(virtual.disk().filesBelow('/data')).toEqual([partial])
    await virtual.drive(writer.commit())
    expect(virtual.disk().filesBelow('/data')).toEqual([data])
    expect(virtual.disk().openFileCount).toBe(0)
  })

  it.each(['sync', 'close', 'rename', 'syncDirectory'] as const)(
    'fails the commit when %s fails',
    async (operation) => {
      await virtual.drive(writer.commit())
      writer = new PartitionFileWriter({
        disk: newQueuedDisk(virtual.main),
        layout,
        ordinal: 2,
        space,
        sync: true,
        directMemory: undefined,
      })
      await virtual.drive(append('a'))
      virtual.disk().inject({ operation, fault: { kind: 'error', code: 'EIO' }, times: 1 })
      await expect(virtual.drive(writer.commit())).rejects.toMatchObject({ code: 'DISK_FAILED' })
      writer.fail(new ShuffleError('DISK_FAILED', 'x'))
      await virtual.drive(writer.discard())
      expect(virtual.disk().filesBelow('/data')).toEqual([data])
    },
  )

  it('fails all that follows a failed write, and the commit', async () => {
    await virtual.drive(append('a'))
    virtual.disk().inject({ operation: 'write', fault: { kind: 'error', code: 'EIO' }, times: 1 })
    await expect(virtual.drive(append('b'))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    await expect(virtual.drive(append('c'))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    await expect(virtual.drive(writer.commit())).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(released).toEqual(['a', 'b', 'c'])
    await virtual.drive(writer.discard())
    expect(virtual.disk().filesBelow('/data')).toEqual([])
  })

  it('keeps the memory of a hung write until it ends, then deletes the file', async () => {
    await virtual.drive(append('a'))
    virtual.disk().inject({ operation: 'write', fault: { kind: 'hang' }, times: 1 })
    const hung = append('b')
    await virtual.clock.advance(1)
    const waiting = append('c')
    const outcomes = await virtual.drive(Promise.allSettled([hung, waiting]))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'DISK_FAILED' } })
    }
    expect(released).toEqual(['a', 'c'])
    const discarded = writer.discard()
    virtual.disk().releaseHung()
    await virtual.drive(discarded)
    expect(released).toEqual(['a', 'c', 'b'])
    expect(virtual.disk().filesBelow('/data')).toEqual([])
    expect(virtual.disk().openFileCount).toBe(0)
  })

  it('fails its appends when the file cannot be made', async () => {
    virtual.disk().inject({ operation: 'open', fault: { kind: 'error', code: 'EMFILE' } })
    const other = new PartitionFileWriter({
      disk: newQueuedDisk(virtual.main),
      layout,
      ordinal: 2,
      space,
      sync: false,
      directMemory: undefined,
    })
    await expect(
      virtual.drive(other.append([Buffer.from('x')], () => released.push('x'))),
    ).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(released).toEqual(['x'])
  })
})
