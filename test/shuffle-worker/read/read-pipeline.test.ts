import { describe, expect, it } from 'vitest'
import { directBlockBytes } from '../../../client/common/aligned-memory.ts'
import { entryHeaderLength } from '../../../client/protocol/entry.ts'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { ReadMemory } from '../../../shuffle-worker/read/read-memory.ts'
import { ReadPipeline } from '../../../shuffle-worker/read/read-pipeline.ts'
import { planReads } from '../../../shuffle-worker/read/read-plan.ts'
import { ReadBench } from './support/read-bench.ts'

class Channel implements SweepChannel {
  readonly isClosed = false
  readonly isStarved = false
  readonly isIdle = false
  readonly lengths: number[] = []
  readonly errors: unknown[] = []
  settled = 0
  /** When it was told last that it may take something again. */
  plannedBytesWhenTold: number | undefined
  list: DiskList | undefined
  roomBytes(): number {
    return 10_000_000
  }
  canBeginRun(): boolean {
    return true
  }
  beginRun(cursor: PartitionCursor): boolean {
    cursor.holdsRun = true
    return true
  }
  endRun(cursor: PartitionCursor): void {
    cursor.holdsRun = false
  }
  append(_cursor: PartitionCursor, _place: object, bytes: Uint8Array): boolean {
    this.lengths.push(bytes.length)
    return true
  }
  settle(): void {
    this.settled += 1
  }
  fail(cursor: PartitionCursor, error: unknown): void {
    cursor.isOver = true
    this.errors.push(error)
  }
  afterDelivery(): void {
    this.plannedBytesWhenTold = this.list?.plannedBytes
  }
  hasCursorRoom(): boolean {
    return true
  }
  beginEntry(): PartitionCursor {
    throw new Error('nothing is listed')
  }
  failEntry(): void {
    throw new Error('nothing is listed')
  }
  afterPlan(): void {
    return
  }
}

function make(options: {
  readonly sizes: readonly number[]
  readonly memoryBytes?: number
  readonly diskBlockBytes?: number
}) {
  const bench = new ReadBench({ memoryBytes: options.memoryBytes ?? 4 * 1024 * 1024, seed: 3 })
  const memory = new ReadMemory(bench.ledger)
  const faults: unknown[] = []
  /** Who waits for the event loop to go round. */
  const turns: (() => void)[] = []
  const pipeline = new ReadPipeline({
    memory,
    blockBytes: memory.blockBytesMin,
    readsInFlightMax: 4,
    nowMs: () => bench.clock.nowMs(),
    afterTurn: (callback) => turns.push(callback),
    onCompleted: () => undefined,
    onFault: (error) => faults.push(error),
  })
  const partition = bench.add(0, 1, [
    { kind: 'sorted', runs: [options.sizes.map((size) => bench.payload(size))] },
  ])
  const channel = new Channel()
  const list = new DiskList(channel, new ListMemory(bench.ledger))
  channel.list = list
  const newCursor = () => {
    const range = { firstSubpartition: 0, lastSubpartition: 0, start: fromBeginning }
    const made = new PartitionCursor({ index: 0, partition, ...range })
    list.add(made)
    return made
  }
  const cursor = newCursor()
  /** Issues the reads for the cursors, which stand at the same place. */
  const read = async (cursors: readonly PartitionCursor[]) => {
    const { diskBlockBytes = 1 } = options
    const reader = { ...(await partition.openReader()), blockBytes: diskBlockBytes }
    const index = await reader.regionIndex(0)
    const slices = cursors.map((each) => {
      each.enterRegion(index)
      const slice = list.plan(each, pipeline.readBytesMax)
      if (slice === undefined) throw new Error('it is planned')
      return slice
    })
    index.release()
    const limits = { readBytesMax: pipeline.readBytesMax, gapBytesMax: 0 }
    for (const plan of planReads(slices, limits)) await pipeline.read({ plan, reader })
    return reader
  }
  const readAll = async () => {
    const reader = await read([cursor])
    await pipeline.settled
    await reader.close()
  }
  const parts = { bench, memory, pipeline, channel, list, cursor }
  return { ...parts, newCursor, read, readAll, faults, turns }
}

describe('read pipeline', () => {
  it('delivers entries that blocks cut, in order, whatever the order in which reads end', async () => {
    const sizes = Array.from({ length: 60 }, (_, index) => (index * 977) % 4000)
    const { bench, channel, list, cursor, readAll, faults, pipeline } = make({ sizes })
    await bench.clock.drive(readAll())
    expect(channel.lengths).toEqual(sizes.map((size) => size + 16))
    expect(bench.disk.reads.length).toBeGreaterThan(5)
    expect(cursor.isComplete).toBe(true)
    expect(list.plannedBytes).toBe(0)
    expect(faults).toEqual([])
    pipeline.close()
    await bench.clock.settle()
    expect(bench.ledger.usedBytes('read')).toBe(0)
  })

  it('delivers as much when it reads by whole blocks of the disk', async () => {
    const sizes = Array.from({ length: 60 }, (_, index) => 1 + ((index * 997) % 4000))
    const { channel, readAll, bench } = make({ sizes, diskBlockBytes: directBlockBytes })
    await bench.clock.drive(readAll())
    expect(channel.lengths).toEqual(sizes.map((size) => size + entryHeaderLength))
  })

  it('lets the event loop go round before it hands on more than some hundred slices', async () => {
    const { bench, channel, newCursor, read, pipeline, turns } = make({ sizes: [100] })
    const sets = [200, 200, 50].map((count) => Array.from({ length: count }, newCursor))
    for (const cursors of sets) {
      const reader = await bench.clock.drive(read(cursors))
      await reader.close()
    }
    await bench.clock.advance(1000)
    expect([channel.lengths.length, turns.length]).toEqual([200, 1])
    for (const callback of turns.splice(0)) callback()
    await bench.clock.drive(pipeline.settled)
    expect([channel.lengths.length, turns.length]).toEqual([450, 0])
  })

  it('fails what a failing read was for and gives its block back', async () => {
    const { bench, channel, list, readAll, pipeline } = make({ sizes: [100, 200] })
    bench.disk.failing.add(0)
    await bench.clock.drive(readAll())
    expect(channel.errors).toMatchObject([{ code: 'DISK_FAILED' }])
    expect(list.plannedBytes).toBe(0)
    expect(pipeline.inFlight).toBe(0)
    pipeline.releaseBlocks()
    expect(bench.ledger.usedBytes('read')).toBe(0)
  })

  it('reads nothing more for cursors that are over, and counts them off', async () => {
    const sizes = Array.from({ length: 60 }, () => 3000)
    const { bench, channel, list, cursor, readAll, pipeline } = make({ sizes })
    bench.disk.latencyMs = [10, 10]
    const reading = readAll()
    await bench.clock.settle()
    const issued = bench.disk.reads.length
    cursor.isOver = true
    await bench.clock.drive(reading)
    expect(bench.disk.reads.length).toBe(issued)
    expect(channel.lengths).toEqual([])
    expect(list.plannedBytes).toBe(0)
    pipeline.close()
    await bench.clock.settle()
    expect(bench.ledger.usedBytes('read')).toBe(0)
  })

  it('waits for memory and goes on when there is some', async () => {
    const { bench, readAll, pipeline, channel } = make({ sizes: [100], memoryBytes: 1024 * 1024 })
    const held = bench.ledger.tryAcquire({ purpose: 'read', count: bench.ledger.freeCount('read') })
    const reading = readAll()
    await bench.clock.advance(100)
    expect(channel.lengths).toEqual([])
    for (const buffer of held ?? []) buffer.recycle()
    pipeline.retry()
    await bench.clock.drive(reading)
    expect(channel.lengths).toEqual([116])
  })

  it('tells the channel of a cursor that was over before there was memory: its room is free', async () => {
    const { bench, readAll, pipeline, channel, cursor } = make({
      sizes: [100],
      memoryBytes: 1024 * 1024,
    })
    const held = bench.ledger.tryAcquire({ purpose: 'read', count: bench.ledger.freeCount('read') })
    const reading = readAll()
    await bench.clock.advance(100)
    cursor.isOver = true
    for (const buffer of held ?? []) buffer.recycle()
    pipeline.retry()
    await bench.clock.drive(reading)
    expect(bench.disk.reads).toEqual([])
    expect(channel.plannedBytesWhenTold).toBe(0)
  })

  it('lets who waits for a block go when it is closed', async () => {
    const { bench, readAll, pipeline, channel } = make({ sizes: [100], memoryBytes: 1024 * 1024 })
    const held = bench.ledger.tryAcquire({ purpose: 'read', count: bench.ledger.freeCount('read') })
    const reading = readAll()
    await bench.clock.advance(100)
    pipeline.close()
    await bench.clock.drive(reading)
    expect(channel.lengths).toEqual([])
    for (const buffer of held ?? []) buffer.recycle()
  })
})
