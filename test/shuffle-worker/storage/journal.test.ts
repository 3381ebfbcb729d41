import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { Journal, replayJournal } from '../../../shuffle-worker/storage/journal.ts'
import {
  JournalState,
  type JournalRecord,
} from '../../../shuffle-worker/storage/journal-records.ts'
import type { QueuedDisk } from '../../../shuffle-worker/storage/queued-disk.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'
import { factsOf, keyOf } from './support/store-fixture.ts'

const path = '/data/journal'

function committed(ordinal: number): JournalRecord {
  const place = { kind: 'file', ordinal, offset: 0, byteLength: 5 } as const
  return { type: 'committed', place, facts: factsOf(keyOf(ordinal)) }
}

let virtual: VirtualWorld
let disk: QueuedDisk
let journal: Journal

beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory('/data'))
  disk = newQueuedDisk(virtual.main)
  journal = new Journal(
    { disk, directory: '/data', path, newPath: '/data/journal.new', logger: silentLogger },
    new JournalState(),
  )
})

const append = (...ordinals: readonly number[]) =>
  Promise.all(ordinals.map((ordinal) => journal.append(committed(ordinal), { sync: false })))

async function replayedOrdinals(): Promise<number[]> {
  const { state } = await virtual.drive(replayJournal(disk, path))
  return [...state.committed.values()].map((each) => each.place.ordinal)
}

describe('a journal', () => {
  it('is empty where there is none', async () => {
    const replayed = await virtual.drive(replayJournal(disk, path))
    expect(replayed.isTorn).toBe(false)
    expect(replayed.state.committed.size).toBe(0)
  })

  it('gives back in order what was appended, many in one write', async () => {
    await virtual.drive(append(1, 2, 3))
    const before = virtual.disk().operationCount
    await virtual.drive(append(...Array.from({ length: 50 }, (_, index) => index + 4)))
    expect(virtual.disk().operationCount).toBe(before + 1)
    expect(await replayedOrdinals()).toEqual(Array.from({ length: 53 }, (_, index) => index + 1))
  })

  it('stands with its whole records wherever it is cut', async () => {
    await virtual.drive(append(1))
    await virtual.drive(append(2))
    const whole = virtual.disk().contentOf(path) ?? Buffer.alloc(0)
    const seen = new Set<number>()
    for (let length = 0; length <= whole.byteLength; length += 1) {
      virtual.disk().put(path, whole.subarray(0, length))
      const ordinals = await replayedOrdinals()
      expect([[], [1], [1, 2]]).toContainEqual(ordinals)
      seen.add(ordinals.length)
    }
    expect([...seen]).toEqual([0, 1, 2])
  })

  it('ends before the first damaged record', async () => {
    await virtual.drive(append(1))
    const end = virtual.disk().contentOf(path)?.byteLength ?? 0
    await virtual.drive(append(2))
    const bytes = Buffer.from(virtual.disk().contentOf(path) ?? [])
    for (let at = end; at < bytes.byteLength; at += 1) {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] ?? 0) ^ 0x10
      virtual.disk().put(path, damaged)
      expect(await replayedOrdinals()).toEqual([1])
    }
  })

  it('of another version is refused and not touched', async () => {
    await virtual.drive(append(1))
    const bytes = Buffer.from(virtual.disk().contentOf(path) ?? [])
    bytes.writeUInt16BE(2, 4)
    bytes.writeUInt16BE(0xffff - 2, 6)
    virtual.disk().put(path, bytes)
    await expect(virtual.drive(replayJournal(disk, path))).rejects.toMatchObject({
      code: 'UNSUPPORTED_VERSION',
    })
    expect(Buffer.from(virtual.disk().contentOf(path) ?? [])).toEqual(bytes)
  })

  it('with a damaged header counts as empty: no bit of it keeps a worker from starting', async () => {
    await virtual.drive(append(1))
    const bytes = Buffer.from(virtual.disk().contentOf(path) ?? [])
    for (let bit = 0; bit < 64; bit += 1) {
      const damaged = Buffer.from(bytes)
      const at = bit >> 3
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (bit & 7))
      virtual.disk().put(path, damaged)
      const { state, isTorn } = await virtual.drive(replayJournal(disk, path))
      // The complement alone says nothing about a version that is ours.
      expect([bit, state.committed.size, isTorn]).toEqual(
        bit < 48 ? [bit, 0, true] : [bit, 1, false],
      )
    }
  })

  it('fails the appends of a write that failed, and begins a new file with the next', async () => {
    await virtual.drive(append(1))
    virtual.disk().inject({ operation: 'write', path, times: 1, fault: { kind: 'short' } })
    await expect(virtual.drive(append(2, 3))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    await virtual.drive(append(4))
    expect(await replayedOrdinals()).toEqual([1, 4])
    expect(virtual.disk().filesBelow('/data')).toEqual([path])
  })

  it('leaves nothing of a new file for which there was no room', async () => {
    await virtual.drive(append(1))
    const before = virtual.disk().contentOf(path)
    virtual.disk().setCapacity('/data', (before?.byteLength ?? 0) + 20)
    await expect(virtual.drive(append(2))).rejects.toMatchObject({ code: 'NO_SPACE' })
    await expect(virtual.drive(append(3))).rejects.toMatchObject({ code: 'NO_SPACE' })
    expect(virtual.disk().filesBelow('/data')).toEqual([path])
    expect(await replayedOrdinals()).toEqual([1])
    virtual.disk().setCapacity('/data', 10_000)
    await virtual.drive(append(4))
    expect(await replayedOrdinals()).toEqual([1, 4])
  })

  it('is never replaced by a half-written one, however late the rename of an earlier one is', async () => {
    await virtual.drive(append(1))
    const faults = virtual.disk()
    faults.inject({ operation: 'write', path, times: 1, fault: { kind: 'short' } })
    await expect(virtual.drive(append(2))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    faults.inject({ operation: 'rename', times: 1, fault: { kind: 'hang' } })
    await expect(virtual.drive(append(3))).rejects.toMatchObject({ code: 'DISK_FAILED' })
    const fault = { kind: 'slow', delayMs: 1000 } as const
    const slow = faults.inject({ operation: 'write', path, after: 1, fault })
    const fourth = append(4).catch((error: unknown) => error)
    await virtual.clock.advance(500)
    faults.releaseHung()
    await virtual.clock.advance(100)
    expect(await replayedOrdinals()).toEqual([1])
    expect(await virtual.drive(fourth)).toMatchObject({ code: 'DISK_FAILED' })
    slow.remove()
    await virtual.drive(append(5))
    expect(await replayedOrdinals()).toEqual([1, 5])
  })

  it('is rewritten when most of it is history', async () => {
    const place = { kind: 'file', ordinal: 1, offset: 0, byteLength: 5 } as const
    const round = async () => {
      const released: JournalRecord = { type: 'released', place, key: keyOf(1) }
      await Promise.all(
        Array.from({ length: 4000 }, (_, index) =>
          journal.append(index % 2 === 0 ? committed(1) : released, { sync: false }),
        ),
      )
    }
    let before = 0
    for (let count = 0; count < 30; count += 1) {
      await virtual.drive(round())
      const size = virtual.disk().contentOf(path)?.byteLength ?? 0
      if (size < before) return
      before = size
    }
    expect.unreachable()
  })

  it('loses nothing that was synced', async () => {
    await virtual.drive(journal.append(committed(1), { sync: true }))
    virtual.disk().crash('drop')
    disk = newQueuedDisk(virtual.start('main'))
    expect(await replayedOrdinals()).toEqual([1])
  })

  it('closes its file', async () => {
    await virtual.drive(append(1))
    await virtual.drive(journal.close())
    expect(virtual.disk().openFileCount).toBe(0)
  })
})
