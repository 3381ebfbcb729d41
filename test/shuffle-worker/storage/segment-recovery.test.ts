import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import {
  encodeLogRecordHeader,
  encodeSegmentHeader,
} from '../../../shuffle-worker/storage/log-record.ts'
import { encodeTail } from '../../../shuffle-worker/storage/partition-format.ts'
import { recoverSegment } from '../../../shuffle-worker/storage/segment-recovery.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'
import { factsOf, keyOf } from './support/store-fixture.ts'

const path = '/data/log/000000000005.segment'

let virtual: VirtualWorld

beforeEach(() => {
  virtual = new VirtualWorld()
})

function record(index: number): Buffer {
  const facts = factsOf(keyOf(index))
  const uncompressedBytes = new Float64Array(facts.subpartitionCount)
  const body = encodeTail({ facts, regions: [], uncompressedBytes }, 0)
  return Buffer.concat([encodeLogRecordHeader([body]), body])
}

async function recover(content: Buffer, knownEnd = 0) {
  virtual.disk().put(path, content)
  const disk = newQueuedDisk(virtual.main)
  const scanned = await virtual.drive(
    recoverSegment({ disk, path, ordinal: 5, knownEnd, logger: silentLogger }),
  )
  expect(virtual.disk().openFileCount).toBe(0)
  const keys = scanned.found.map(({ facts }) => facts.key.partitionIndex)
  return { scanned, keys, left: Buffer.from(virtual.disk().contentOf(path) ?? []) }
}

const whole = Buffer.concat([encodeSegmentHeader(), record(1), record(2)])

describe('a segment after a crash', () => {
  it('has its whole records, and is cut after them, wherever it was torn', async () => {
    const second = 8 + record(1).byteLength
    for (let length = 8; length <= whole.byteLength; length += 1) {
      const { keys, left } = await recover(whole.subarray(0, length))
      const expected = length === whole.byteLength ? 2 : length >= second ? 1 : 0
      expect(keys).toEqual([1, 2].slice(0, expected))
      expect(left.byteLength).toBe([8, second, whole.byteLength][expected])
    }
  })

  it('that has no whole header never held anything', async () => {
    const { scanned } = await recover(whole.subarray(0, 7))
    expect(scanned).toMatchObject({ isEmpty: true, isForeign: false })
  })

  it('is scanned only from where the journal knows it', async () => {
    const { keys } = await recover(whole, 8 + record(1).byteLength)
    expect(keys).toEqual([2])
  })

  it('of another version, or with a record of one, is left alone', async () => {
    const foreign = Buffer.from(whole)
    foreign.writeUInt16BE(9, 4)
    const segment = await recover(foreign)
    expect(segment.scanned).toMatchObject({ isForeign: true, found: [] })
    expect(segment.left).toEqual(foreign)
    const body = Buffer.from(record(2).subarray(20))
    body.writeUInt16BE(9, body.byteLength - 8)
    const mixed = Buffer.concat([
      encodeSegmentHeader(),
      record(1),
      encodeLogRecordHeader([body]),
      body,
    ])
    const records = await recover(mixed)
    expect(records.keys).toEqual([1])
    expect(records.scanned.isForeign).toBe(true)
    expect(records.left).toEqual(mixed)
  })

  it('has no record with a flipped bit', async () => {
    for (let at = 8; at < 8 + record(1).byteLength; at += 1) {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] ?? 0) ^ 4
      expect((await recover(damaged)).keys).not.toContain(1)
    }
  })
})
