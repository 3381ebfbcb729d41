import { beforeEach, describe, expect, it } from 'vitest'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import type { PartitionPlace } from '../../../shuffle-worker/storage/journal-records.ts'
import { ReadingFiles } from '../../../shuffle-worker/storage/reading-files.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const place = (kind: 'file' | 'segment', ordinal: number): PartitionPlace => ({
  kind,
  ordinal,
  offset: 0,
  byteLength: 1,
})

let virtual: VirtualWorld
let files: ReadingFiles

beforeEach(() => {
  virtual = new VirtualWorld()
  virtual.disk().put('/data/partitions/000000000001.data', Buffer.from('file'))
  virtual.disk().put('/data/log/000000000002.segment', Buffer.from('segment'))
  files = new ReadingFiles(newQueuedDisk(virtual.main), layoutOf('/data'))
})

describe('reading files', () => {
  it('are opened once for all their readers and closed with the last', async () => {
    const place2 = place('segment', 2)
    const both = await virtual.drive(Promise.all([files.acquire(place2), files.acquire(place2)]))
    expect(both[0]).toBe(both[1])
    expect(virtual.disk().openFileCount).toBe(1)
    await virtual.drive(files.recycle(place2))
    expect(virtual.disk().openFileCount).toBe(1)
    await virtual.drive(files.recycle(place2))
    expect(virtual.disk().openFileCount).toBe(0)
    expect(files.count).toBe(0)
  })

  it('can be opened again after a failure', async () => {
    virtual.disk().inject({ operation: 'open', fault: { kind: 'error', code: 'EMFILE' }, times: 1 })
    await expect(virtual.drive(files.acquire(place('file', 1)))).rejects.toThrow()
    expect(files.count).toBe(0)
    await virtual.drive(files.acquire(place('file', 1)))
    await virtual.drive(files.recycle(place('file', 1)))
  })

  it('say when there is no such file', async () => {
    await expect(virtual.drive(files.acquire(place('file', 9)))).rejects.toMatchObject({
      fields: { systemCode: 'ENOENT' },
    })
  })
})
