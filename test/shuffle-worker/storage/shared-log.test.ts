import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import { SharedLog, type LogPlace } from '../../../shuffle-worker/storage/shared-log.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const layout = layoutOf('/data')

let virtual: VirtualWorld
let log: SharedLog
let deleted: number[]
let releases: number

beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory(layout.log))
  deleted = []
  releases = 0
  let ordinal = 0
  log = new SharedLog({
    disk: newQueuedDisk(virtual.main),
    layout,
    logger: silentLogger,
    nextOrdinal: () => (ordinal += 1),
    segmentSizeBytes: 4096,
    sync: false,
    onDeleted: (gone) => deleted.push(gone),
  })
})

function append(text: string): Promise<LogPlace> {
  return log.append([Buffer.from(text)], () => (releases += 1))
}

function contentAt(place: LogPlace, length: number): string {
  const segment = virtual.disk().filesBelow(layout.log)[place.ordinal - 1] ?? ''
  const bytes = Buffer.from(virtual.disk().contentOf(segment) ?? [])
  return bytes.subarray(place.offset, place.offset + length).toString()
}

describe('the shared log', () => {
  it('writes what waits together in one write, each record at its place', async () => {
    await virtual.drive(append('first'))
    const before = virtual.disk().operationCount
    const places = await virtual.drive(Promise.all(['one', 'two', 'six'].map(append)))
    expect(virtual.disk().operationCount).toBe(before + 1)
    expect(places.map((place) => contentAt(place, 3))).toEqual(['one', 'two', 'six'])
    expect(releases).toBe(4)
  })

  it('begins a new segment when one is full, and deletes it with its last partition', async () => {
    const first = await virtual.drive(append('x'.repeat(5000)))
    const second = await virtual.drive(append('y'))
    expect([first.ordinal, second.ordinal]).toEqual([1, 2])
    await virtual.drive(log.released(first.ordinal))
    expect(deleted).toEqual([1])
    await virtual.drive(log.released(second.ordinal))
    // It may still take more.
    expect(deleted).toEqual([1])
    expect(virtual.disk().filesBelow(layout.log)).toHaveLength(1)
  })

  it('gives a segment up after a failed write, cut where it was whole', async () => {
    const kept = await virtual.drive(append('kept'))
    const path = virtual.disk().filesBelow(layout.log)[0] ?? ''
    const size = virtual.disk().contentOf(path)?.byteLength
    virtual.disk().inject({ operation: 'write', times: 1, fault: { kind: 'short' } })
    await expect(virtual.drive(append('torn'))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    const next = await virtual.drive(append('next'))
    expect(next.ordinal).toBe(kept.ordinal + 1)
    expect(virtual.disk().contentOf(path)?.byteLength).toBe(size)
    expect(releases).toBe(3)
    await virtual.drive(log.released(kept.ordinal))
    expect(deleted).toEqual([kept.ordinal])
  })

  it('refuses an append whose segment cannot be made, and lets go of its bytes', async () => {
    virtual.disk().inject({ operation: 'open', times: 1, fault: { kind: 'error', code: 'EIO' } })
    await expect(virtual.drive(append('x'))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(releases).toBe(1)
    await virtual.drive(append('y'))
  })

  it('deletes adopted segments too', async () => {
    virtual.disk().put(`${layout.log}/000000000009.segment`, Buffer.alloc(10))
    log.adopt(9, 10, 2)
    await virtual.drive(log.released(9))
    expect(deleted).toEqual([])
    await virtual.drive(log.released(9))
    expect(deleted).toEqual([9])
    expect(log.segmentCount).toBe(0)
  })

  it('closes its file', async () => {
    await virtual.drive(append('x'))
    await virtual.drive(log.close())
    expect(virtual.disk().openFileCount).toBe(0)
  })
})
