import { beforeEach, describe, expect, it } from 'vitest'
import type { QueuedDisk } from '../../../shuffle-worker/storage/queued-disk.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

let virtual: VirtualWorld
let disk: QueuedDisk

beforeEach(async () => {
  virtual = new VirtualWorld()
  disk = newQueuedDisk(virtual.main)
  await virtual.drive(disk.makeDirectory('/data'))
})

describe('a queued disk', () => {
  it('passes every call on', async () => {
    const file = await virtual.drive(disk.open('/data/a', 'create'))
    await virtual.drive(file.write([Buffer.from('he'), Buffer.from('llo')], 0).result)
    await virtual.drive(file.truncate(4))
    await virtual.drive(file.sync())
    expect(await virtual.drive(file.sizeBytes())).toBe(4)
    const target = Buffer.alloc(10)
    expect(await virtual.drive(file.read(target, 1).result)).toBe(3)
    expect(target.subarray(0, 3).toString()).toBe('ell')
    await virtual.drive(file.close())
    await virtual.drive(disk.rename('/data/a', '/data/b'))
    await virtual.drive(disk.syncDirectory('/data'))
    expect(await virtual.drive(disk.list('/data'))).toEqual(['b'])
    expect(await virtual.drive(disk.status('/data/b'))).toMatchObject({ sizeBytes: 4 })
    expect((await virtual.drive(disk.space('/data'))).freeBytes).toBeGreaterThan(0)
    await virtual.drive(disk.unlink('/data/b'))
    expect(await virtual.drive(disk.status('/data/b'))).toBeUndefined()
  })

  it('closes a file that was opened after the deadline', async () => {
    virtual.disk().inject({ operation: 'open', fault: { kind: 'hang' }, times: 1 })
    await expect(virtual.drive(disk.open('/data/a', 'create'))).rejects.toMatchObject({
      code: 'DISK_FAILED',
    })
    virtual.disk().releaseHung()
    await virtual.clock.advance(100)
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/a'])
    expect(virtual.disk().openFileCount).toBe(0)
  })

  it('makes no new file under a name that a late rename is still to take away', async () => {
    virtual.disk().put('/data/a.new', Buffer.from('first'))
    virtual.disk().inject({ operation: 'rename', fault: { kind: 'hang' }, times: 1 })
    await expect(virtual.drive(disk.rename('/data/a.new', '/data/a'))).rejects.toMatchObject({
      code: 'DISK_FAILED',
    })
    await virtual.drive(disk.unlink('/data/a.new'))
    await expect(virtual.drive(disk.open('/data/a.new', 'create'))).rejects.toMatchObject({
      code: 'DISK_FAILED',
    })
    virtual.disk().releaseHung()
    await virtual.clock.advance(100)
    await virtual.drive((await virtual.drive(disk.open('/data/a.new', 'create'))).close())
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/a.new'])
  })

  it('closes a file only after its last call has really ended', async () => {
    const file = await virtual.drive(disk.open('/data/a', 'create'))
    virtual.disk().inject({ operation: 'read', fault: { kind: 'hang' }, times: 1 })
    const read = file.read(Buffer.alloc(1), 0)
    await expect(virtual.drive(read.result)).rejects.toMatchObject({ code: 'DISK_FAILED' })
    file.closeQuietly()
    await virtual.clock.advance(1000)
    expect(virtual.disk().openFileCount).toBe(1)
    virtual.disk().releaseHung()
    await virtual.clock.advance(100)
    expect(virtual.disk().openFileCount).toBe(0)
    await virtual.drive(file.close())
  })
})
