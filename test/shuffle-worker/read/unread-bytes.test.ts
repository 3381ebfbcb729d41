import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { bytesOfBegun, bytesOfListed } from '../../../shuffle-worker/read/unread-bytes.ts'
import { ReadBench } from './support/read-bench.ts'

function entryOfRange(firstSubpartition: number, lastSubpartition: number) {
  const bench = new ReadBench()
  const runs = [100, 200, 300, 84].map((size) => [bench.payload(size)])
  const regions = [
    { kind: 'sorted', runs },
    { kind: 'sorted', runs },
  ] as const
  const partition = bench.add(0, 4, regions)
  return { index: 0, partition, firstSubpartition, lastSubpartition, start: fromBeginning }
}

describe('unread bytes', () => {
  it('are the share of the range as long as nothing was read, begun or not', () => {
    const entry = entryOfRange(0, 2)
    const byteCount = 2 * (100 + 200 + 300 + 84 + 4 * 16)
    expect(bytesOfListed(entry)).toBe(Math.ceil((byteCount * 3) / 4))
    expect(bytesOfBegun(new PartitionCursor(entry))).toBe(bytesOfListed(entry))
  })

  it('are exact for the regions whose index was looked at', async () => {
    const entry = entryOfRange(1, 1)
    const cursor = new PartitionCursor(entry)
    const reader = await entry.partition.openReader()
    cursor.enterRegion(await reader.regionIndex(0))
    expect(bytesOfBegun(cursor)).toBe(216 + Math.ceil(entry.partition.totals.byteCount / 4 / 2))
  })
})
