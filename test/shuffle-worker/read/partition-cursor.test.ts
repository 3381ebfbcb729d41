import { describe, expect, it } from 'vitest'
import { fromBeginning, type ReadStart } from '../../../client/protocol/partition-list.ts'
import { type EntrySink, PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import type { PartitionReader } from '../../../shuffle-worker/storage/storage-types.ts'
import { bufferSizeBytes, type RegionContent } from './support/memory-partition.ts'
import { ReadBench } from './support/read-bench.ts'

/** A channel that takes as many entries as it is told. */
class Sink implements EntrySink {
  readonly taken: string[] = []
  entriesLeft = Infinity
  runsLeft = Infinity

  beginRun(cursor: PartitionCursor): boolean {
    if (this.runsLeft <= 0) return false
    this.runsLeft -= 1
    cursor.holdsRun = true
    return true
  }

  endRun(cursor: PartitionCursor): void {
    if (cursor.holdsRun) this.runsLeft += 1
    cursor.holdsRun = false
  }

  append(
    _cursor: PartitionCursor,
    place: { readonly regionIndex: number; readonly subpartition: number },
    bytes: Uint8Array,
  ): boolean {
    if (this.entriesLeft <= 0) return false
    this.entriesLeft -= 1
    this.taken.push([place.regionIndex, place.subpartition, bytes.length].join('/'))
    return true
  }
}

class Steps {
  readonly bench = new ReadBench()
  readonly sink = new Sink()
  readonly cursor: PartitionCursor
  readonly reader: Promise<PartitionReader>
  readBytesMax = 512 * 1024

  constructor(
    regions: readonly RegionContent[],
    range: readonly [number, number],
    start: ReadStart = fromBeginning,
  ) {
    const partition = this.bench.add(0, 4, regions)
    this.reader = partition.openReader()
    this.cursor = new PartitionCursor({
      index: 0,
      partition,
      firstSubpartition: range[0],
      lastSubpartition: range[1],
      start,
    })
  }

  async enter(): Promise<void> {
    const region = this.cursor.wantedRegion
    if (region === undefined) return
    const index = await (await this.reader).regionIndex(region)
    this.cursor.enterRegion(index)
    index.release()
  }

  /** Plans with this room and delivers the whole slice from one window. */
  async step(roomBytes: number): Promise<string | undefined> {
    await this.enter()
    const slice = this.cursor.plan(roomBytes, this.readBytesMax)
    if (slice === undefined) return undefined
    const bytes = Buffer.alloc(slice.end - slice.start)
    const read = (await this.reader).read(bytes, slice.start)
    await this.bench.clock.drive(read.ended)
    const window = { bytes, start: slice.start, end: slice.end }
    const outcome = this.cursor.deliver(slice, window, this.sink)
    this.cursor.retire(slice)
    return outcome
  }
}

const sized = (...sizes: number[]) => sizes.map((size) => Buffer.alloc(size))

describe('partition cursor', () => {
  it('goes region by region to the end and knows the totals of its range', async () => {
    const steps = new Steps(
      [
        { kind: 'sorted', runs: [sized(1), sized(10, 20), sized(30), sized(40)] },
        { kind: 'sorted', runs: [[], [], [], sized(5)] },
        { kind: 'sorted', runs: [[], sized(7), [], []] },
      ],
      [1, 2],
    )
    while (!steps.cursor.isComplete) await steps.step(10_000)
    expect(steps.sink.taken).toEqual(['0/1/26', '0/1/36', '0/2/46', '2/1/23'])
    expect(steps.cursor.entryTotal).toBe(4)
    expect(steps.cursor.byteTotal).toBe(26 + 36 + 46 + 23)
    expect(steps.cursor.knownLeftBytes).toBe(0)
  })

  it('serves a small broadcast region to each subpartition from one read', async () => {
    const steps = new Steps([{ kind: 'broadcast', run: sized(10, 20) }], [1, 3])
    expect(await steps.step(10_000)).toBe('done')
    expect(steps.sink.taken).toEqual(['0/1/26', '0/1/36', '0/2/26', '0/2/36', '0/3/26', '0/3/36'])
    expect(steps.cursor.isComplete).toBe(true)
    expect(steps.cursor.entryTotal).toBe(6)
  })

  it('goes on where room ended, without a repeat', async () => {
    const steps = new Steps(
      [
        { kind: 'sorted', runs: [sized(3000, 3000, 3000), sized(100), [], []] },
        { kind: 'broadcast', run: sized(3000, 3000) },
      ],
      [0, 1],
    )
    for (let round = 0; !steps.cursor.isComplete && round < 100; round++) {
      steps.sink.entriesLeft = 1
      await steps.step(bufferSizeBytes)
    }
    expect(steps.sink.taken.map((place) => place.slice(0, 3))).toEqual([
      '0/0',
      '0/0',
      '0/0',
      '0/1',
      '1/0',
      '1/0',
      '1/1',
      '1/1',
    ])
    expect(steps.cursor.entryTotal).toBe(8)
  })

  it('asks for room for one entry at least, or for all that is left', async () => {
    const steps = new Steps([{ kind: 'sorted', runs: [sized(100), [], [], []] }], [0, 0])
    expect(steps.cursor.canPlanWith(1000)).toBe(false)
    await steps.enter()
    expect(steps.cursor.canPlanWith(131)).toBe(false)
    expect(steps.cursor.canPlanWith(132)).toBe(true)
  })

  it('plans nothing more behind a slice that room cut short', async () => {
    const steps = new Steps([{ kind: 'sorted', runs: [sized(3000, 3000), [], [], []] }], [0, 0])
    await steps.enter()
    const slice = steps.cursor.plan(4096, steps.readBytesMax)
    expect(slice?.reachesEnd).toBe(false)
    expect(steps.cursor.isPlannable).toBe(false)
    if (slice !== undefined) steps.cursor.retire(slice)
    expect(steps.cursor.isPlannable).toBe(true)
    expect(steps.cursor.plannedPosition).toBe(slice?.start)
  })

  it('makes later slices void when an earlier one stops, and plans them again', async () => {
    const steps = new Steps(
      [
        { kind: 'sorted', runs: [sized(100, 200), [], [], []] },
        { kind: 'sorted', runs: [sized(300), [], [], []] },
      ],
      [0, 0],
    )
    await steps.enter()
    const first = steps.cursor.plan(10_000, steps.readBytesMax)
    await steps.enter()
    const second = steps.cursor.plan(10_000, steps.readBytesMax)
    expect(steps.cursor.underWay).toBe(2)
    expect(steps.cursor.isFullyPlanned).toBe(true)
    steps.sink.entriesLeft = 1
    for (const slice of [first, second]) {
      if (slice === undefined) throw new Error('both are planned')
      const bytes = Buffer.alloc(slice.end - slice.start)
      await steps.bench.clock.drive((await steps.reader).read(bytes, slice.start).ended)
      steps.cursor.deliver(slice, { bytes, start: slice.start, end: slice.end }, steps.sink)
      steps.sink.entriesLeft = 10
      steps.cursor.retire(slice)
    }
    expect(steps.sink.taken).toEqual(['0/0/116'])
    while (!steps.cursor.isComplete) await steps.step(10_000)
    expect(steps.sink.taken).toEqual(['0/0/116', '0/0/216', '1/0/316'])
    expect(steps.cursor.byteTotal).toBe(116 + 216 + 316)
  })

  it('stops before a run that may not begin, and ends each run it began', async () => {
    const steps = new Steps([{ kind: 'sorted', runs: [sized(1, 2), sized(3), [], []] }], [0, 1])
    steps.sink.runsLeft = 1
    expect(await steps.step(10_000)).toBe('done')
    expect(steps.sink.runsLeft).toBe(1)
    const other = new Steps([{ kind: 'sorted', runs: [sized(1), [], [], []] }], [0, 0])
    other.sink.runsLeft = 0
    expect(await other.step(10_000)).toBe('stopped')
    expect(other.cursor.holdsRun).toBe(false)
  })

  it('finds bytes that can not be entries of its range corrupt', async () => {
    for (const damage of [
      (bytes: Buffer) => bytes.writeUInt32BE(50_000, 0),
      (bytes: Buffer) => bytes.writeUInt32BE(3, 4),
    ]) {
      const steps = new Steps([{ kind: 'sorted', runs: [sized(100), [], [], []] }], [0, 1])
      await steps.enter()
      const slice = steps.cursor.plan(10_000, steps.readBytesMax)
      if (slice === undefined) throw new Error('it is planned')
      const bytes = Buffer.alloc(slice.end - slice.start)
      await steps.bench.clock.drive((await steps.reader).read(bytes, slice.start).ended)
      damage(bytes)
      expect(() =>
        steps.cursor.deliver(slice, { bytes, start: slice.start, end: slice.end }, steps.sink),
      ).toThrow(expect.objectContaining({ code: 'DATA_CORRUPT' }))
    }
  })

  it('begins behind the last entry received, and counts the whole range all the same', async () => {
    const start = { regionIndex: 1, subpartition: 2, byteOffset: 26 }
    const steps = new Steps(
      [
        { kind: 'sorted', runs: [sized(1), sized(1), sized(1), sized(1)] },
        { kind: 'sorted', runs: [sized(1), sized(1), sized(10, 20), sized(30)] },
      ],
      [0, 3],
      start,
    )
    while (!steps.cursor.isComplete) await steps.step(10_000)
    expect(steps.sink.taken).toEqual(['1/2/36', '1/3/46'])
    expect(steps.cursor.entryTotal).toBe(9)
    expect(steps.cursor.knownLeftBytes).toBe(0)
  })

  it('is complete at once when it starts at the end', async () => {
    for (const start of [
      { regionIndex: 0, subpartition: 3, byteOffset: 26 },
      { regionIndex: 5, subpartition: 0, byteOffset: 0 },
      { regionIndex: 0, subpartition: 9, byteOffset: 0 },
    ]) {
      const steps = new Steps([{ kind: 'sorted', runs: [[], [], [], sized(10)] }], [0, 3], start)
      await steps.enter()
      expect(steps.cursor.isComplete).toBe(true)
      expect(steps.cursor.entryTotal).toBe(1)
      expect(steps.cursor.knownLeftBytes).toBe(0)
    }
  })

  it('refuses a start before its range or behind the end of its run', async () => {
    for (const start of [
      { regionIndex: 0, subpartition: 0, byteOffset: 5 },
      { regionIndex: 0, subpartition: 1, byteOffset: 27 },
    ]) {
      const steps = new Steps(
        [{ kind: 'sorted', runs: [sized(9), sized(10), [], []] }],
        [1, 2],
        start,
      )
      await expect(steps.enter()).rejects.toMatchObject({ code: 'PROTOCOL' })
    }
  })
})
