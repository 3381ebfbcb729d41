import { beforeEach, describe, expect, it } from 'vitest'
import { parseJobId } from '../../../client/common/ids.ts'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { KeptIndexes } from '../../../shuffle-worker/storage/kept-indexes.ts'
import type { RegionPlace } from '../../../shuffle-worker/storage/partition-format.ts'
import { RunTable } from '../../../shuffle-worker/storage/stored-region-index.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const jobId = parseJobId('job')
const region: RegionPlace = {
  position: 0,
  byteLength: 1000,
  rowLength: 10,
  entryCount: 100,
  isBroadcast: false,
}

function tableOf(runCount: number, regionIndex = 0): RunTable {
  const row = {
    isBroadcast: false,
    subpartitions: Uint32Array.from({ length: runCount }, (_, index) => index),
    byteLengths: new Float64Array(runCount).fill(10),
    entryCounts: new Uint32Array(runCount).fill(1),
  }
  return new RunTable(regionIndex, row, region, 0)
}

let clock: VirtualClock
let ledger: MemoryLedger
let indexes: KeptIndexes

beforeEach(() => {
  clock = new VirtualClock()
  ledger = new MemoryLedger({ clock, totalBytes: 8 * 1024 * 1024, bufferSizeBytes: 4096 })
  indexes = new KeptIndexes({ clock, ledger })
})

/** Partitions of a quarter of what may be kept each, until none fits. */
function fill(): ReturnType<KeptIndexes['of']>[] {
  const quarter = Math.floor(ledger.partBytes('index') / 8 / 16) - 30
  return Array.from({ length: 4 }, () => {
    const kept = indexes.of(jobId)
    kept.keepRow(tableOf(quarter))
    return kept
  })
}

describe('kept indexes', () => {
  it('count what they keep, and give it back with the partition', () => {
    const kept = indexes.of(jobId)
    expect(indexes.bytes).toBe(0)
    kept.keepRegions([region])
    kept.keepRow(tableOf(100))
    expect(kept.regions).toEqual([region])
    expect(kept.row(0)?.runCount).toBe(100)
    expect(kept.row(1)).toBeUndefined()
    expect(indexes.bytes).toBeGreaterThan(100 * 16)
    expect(ledger.usedBytes('index')).toBe(indexes.bytes)
    kept.drop()
    kept.keepRow(tableOf(100))
    expect(kept.row(0)).toBeUndefined()
    expect(kept.regions).toBeUndefined()
    expect(ledger.usedBytes('index')).toBe(0)
    ledger.assertBalanced()
  })

  it('take at most half of the index memory', () => {
    fill()
    expect(indexes.bytes).toBeGreaterThan(ledger.partBytes('index') * 0.45)
    expect(indexes.bytes).toBeLessThanOrEqual(ledger.partBytes('index') / 2)
  })

  it('keep what is in use when more comes, and let go of what was not used for a minute', async () => {
    const [first, second] = fill()
    const late = indexes.of(jobId)
    late.keepRow(tableOf(1000))
    expect(late.row(0)).toBeUndefined()
    await clock.advance(59_000)
    expect(first?.row(0)).toBeDefined()
    await clock.advance(2000)
    late.keepRow(tableOf(1000))
    expect(late.row(0)).toBeDefined()
    expect(first?.row(0)).toBeDefined()
    expect(second?.row(0)).toBeUndefined()
  })

  it('let nothing go while it is read', async () => {
    const [first] = fill()
    first?.pin()
    await clock.advance(61_000)
    indexes.of(jobId).keepRow(tableOf(1000))
    expect(first?.row(0)).toBeDefined()
    const before = indexes.bytes
    first?.drop()
    expect(indexes.bytes).toBe(before)
    first?.unpin()
    expect(indexes.bytes).toBeLessThan(before)
  })

  it('keep nothing after the end', () => {
    fill()
    indexes.close()
    expect(ledger.usedBytes('index')).toBe(0)
    const late = indexes.of(jobId)
    late.keepRow(tableOf(1))
    expect(late.row(0)).toBeUndefined()
  })
})
