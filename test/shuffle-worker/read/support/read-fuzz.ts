// Reads of all kinds at once, drawn from a seed: disks, files and segments, slow, stuck and leaving
// consumers, drops, connections that take nothing for a while, memory that others hold. Whatever
// happens each read ends, with the bytes that were stored, and gives everything back.

import { expect } from 'vitest'
import { isShuffleError } from '../../../../client/common/errors.ts'
import type { MapPartition } from '../../../../shuffle-worker/storage/storage-types.ts'
import type { VirtualRandom } from '../../../support/virtual-random.ts'
import type { Consumer } from './consumer.ts'
import { MemorySegment, type RegionContent } from './memory-partition.ts'
import { entryOf, ReadBench } from './read-bench.ts'

interface Listed {
  readonly partition: number
  readonly first: number
  readonly last: number
}

interface Reader {
  readonly consumer: Consumer
  readonly list: Listed[]
  readonly dropped: Set<number>
  sentCount: number
  isClosed: boolean
  /** What ended its channel instead: there is no room for its list. */
  refusal: unknown
}

const endsWithinMs = 600_000
const unfinishedRunsMax = 16

export class ReadFuzz {
  readonly #random: VirtualRandom
  readonly #bench: ReadBench
  readonly #diskCount: number
  readonly #subpartitionCount: number
  readonly #contents: RegionContent[][] = []
  readonly #readers: Reader[] = []
  readonly #held: (() => void)[] = []

  constructor(seed: number) {
    const memoryBytes = this.#memoryBytes(seed)
    this.#random = new ReadBench({ seed, memoryBytes }).random
    this.#diskCount = 1 + this.#draw(3)
    this.#bench = new ReadBench({
      seed: seed + 77,
      memoryBytes,
      diskCount: this.#diskCount,
      kind: this.#draw(2) === 1 ? 'ssd' : 'hdd',
      openFilesMax: this.#oneOf([2, 6, 4096]),
      readAheadBytes: this.#oneOf([65_536, 1_048_576]),
    })
    this.#bench.disk.latencyMs = this.#oneOf([
      [0, 0],
      [0.1, 2],
      [1, 30],
    ] as const)
    const indexLatencyMs = this.#oneOf([0, 3])
    const partitionCount = 1 + this.#draw(50)
    this.#subpartitionCount = 1 + this.#draw(6)
    this.#store(partitionCount, indexLatencyMs)
  }

  /** Rejects where a read does not end, or not as it should. */
  async run(): Promise<void> {
    const { clock } = this.#bench
    const channelCount = 1 + this.#draw(12)
    for (let count = 0; count < channelCount; count++) this.#scheduleReader()
    const squeezeCount = this.#draw(4)
    for (let count = 0; count < squeezeCount; count++) {
      clock.schedule(this.#random.float() * 50, () => {
        this.#squeeze()
      })
    }
    const isDone = () =>
      this.#readers.length === channelCount && this.#readers.every((each) => hasEnded(each))
    await clock.runUntil(isDone, { withinMs: endsWithinMs })
    for (const reader of this.#readers) this.#check(reader)
    this.#giveBack()
    await clock.advance(60_000)
    this.#giveBack()
    expect(this.#bench.errors).toEqual([])
    this.#bench.expectNothingHeld()
  }

  #memoryBytes(seed: number): number {
    return ([512, 640, 1024, 4096][seed % 4] ?? 512) * 1024
  }

  #draw(count: number): number {
    return Math.floor(this.#random.float() * count)
  }

  #oneOf<T>(values: readonly T[]): T {
    const value = values[this.#draw(values.length)]
    if (value === undefined) throw new Error('something is drawn')
    return value
  }

  #store(partitionCount: number, indexLatencyMs: number): void {
    const bench = this.#bench
    const segments = Array.from({ length: this.#diskCount }, (_, disk) => {
      return new MemorySegment(1000 + disk)
    })
    const sizeMax = this.#oneOf([50, 500, 4000])
    for (let index = 0; index < partitionCount; index++) {
      const isInSegment = this.#draw(2) === 0
      const regions = Array.from({ length: this.#draw(4) }, () =>
        this.#region(isInSegment ? 3 : 12, sizeMax),
      )
      this.#contents.push(regions)
      const segment = isInSegment ? segments[index % this.#diskCount] : undefined
      const made = bench.add(index, this.#subpartitionCount, regions, segment)
      if (indexLatencyMs > 0) {
        const partition = this.#withLatency(made, indexLatencyMs)
        bench.partitions.set(String(index), { state: 'committed', partition })
      }
      if (this.#draw(25) === 0) bench.disk.failing.add(index)
      if (this.#draw(25) === 0) bench.disk.released.add(index)
    }
  }

  #region(entriesMax: number, sizeMax: number): RegionContent {
    const payload = () => this.#random.bytes(this.#draw(sizeMax))
    const run = () =>
      Array.from({ length: this.#draw(3) === 0 ? 0 : this.#draw(entriesMax) }, payload)
    if (this.#draw(4) === 0) return { kind: 'broadcast', run: [payload(), ...run()] }
    return { kind: 'sorted', runs: Array.from({ length: this.#subpartitionCount }, run) }
  }

  /** Opening it and reading an index takes a while. */
  #withLatency(made: MapPartition, latencyMs: number): MapPartition {
    const pass = () =>
      new Promise<void>((resolve) => {
        this.#bench.clock.schedule(this.#random.float() * latencyMs, resolve)
      })
    return {
      ...made,
      openReader: async (image) => {
        const reader = await made.openReader(image)
        await pass()
        return {
          ...reader,
          regionIndex: async (index, indexImage) => {
            await pass()
            return reader.regionIndex(index, indexImage)
          },
        }
      },
    }
  }

  #scheduleReader(): void {
    const draw = (count: number) => this.#draw(count)
    const atMs = draw(2) === 1 ? 0 : draw(300)
    const listCount = 1 + draw(this.#contents.length * 2)
    const frameCount = 1 + draw(4)
    const creditWindow = 1 + draw(2) + draw(2) * draw(8)
    const grantDelayMs = draw(3) === 0 ? draw(200) : this.#random.float() * 3
    const stuckMs = draw(4) === 0 ? draw(5000) : 0
    const closesAfterMs = draw(6) === 0 ? draw(200) : undefined
    const dropCount = draw(3) === 0 ? draw(8) : 0
    const pauseCount = draw(3) === 0 ? draw(6) : 0
    this.#bench.clock.schedule(atMs, () => {
      const consumer = this.#bench.open()
      consumer.creditWindow = Math.max(2, creditWindow)
      consumer.grantDelayMs = grantDelayMs
      if (stuckMs > 0) this.#stick(consumer, stuckMs)
      const list = Array.from({ length: listCount }, () => this.#listed())
      const reader: Reader = {
        consumer,
        list,
        dropped: new Set(),
        sentCount: 0,
        isClosed: false,
        refusal: undefined,
      }
      this.#readers.push(reader)
      this.#sendList(reader, Math.ceil(listCount / frameCount))
      for (let count = 0; count < dropCount; count++) this.#scheduleDrop(reader)
      for (let count = 0; count < pauseCount; count++) this.#schedulePause(consumer)
      if (closesAfterMs !== undefined) this.#scheduleClose(reader, closesAfterMs)
    })
  }

  #listed(): Listed {
    const first = this.#draw(this.#subpartitionCount)
    const partition = this.#draw(this.#contents.length)
    return { partition, first, last: first + this.#draw(this.#subpartitionCount - first) }
  }

  #sendList(reader: Reader, perFrame: number): void {
    if (hasEnded(reader)) return
    const { consumer, list, sentCount } = reader
    const part = list.slice(sentCount, sentCount + perFrame)
    try {
      consumer.view?.addPartitions(
        part.map(({ partition, first, last }, offset) =>
          entryOf(sentCount + offset, partition, [first, last]),
        ),
      )
      reader.sentCount += part.length
      if (reader.sentCount === list.length) {
        consumer.view?.end(list.length)
        return
      }
    } catch (error) {
      if (!isShuffleError(error, 'BUSY', 'LIMIT_EXCEEDED')) throw error
      reader.refusal = error
      consumer.view?.close()
      return
    }
    this.#bench.clock.schedule(this.#draw(2) === 1 ? 0 : this.#draw(200), () => {
      this.#sendList(reader, perFrame)
    })
  }

  #stick(consumer: Consumer, durationMs: number): void {
    consumer.isGranting = false
    this.#bench.clock.schedule(durationMs, () => {
      consumer.isGranting = true
      consumer.grant()
    })
  }

  #scheduleDrop(reader: Reader): void {
    this.#bench.clock.schedule(this.#random.float() * 60, () => {
      if (reader.sentCount === 0 || hasEnded(reader)) return
      const index = this.#draw(reader.sentCount)
      reader.dropped.add(index)
      reader.consumer.view?.drop(index)
    })
  }

  #schedulePause(consumer: Consumer): void {
    const { clock } = this.#bench
    clock.schedule(this.#random.float() * 300, () => {
      if (!consumer.isWritable) return
      consumer.isWritable = false
      clock.schedule(this.#random.float() * 100, () => {
        consumer.isWritable = true
        consumer.view?.onWritable()
      })
    })
  }

  #scheduleClose(reader: Reader, afterMs: number): void {
    this.#bench.clock.schedule(afterMs, () => {
      if (hasEnded(reader)) return
      reader.isClosed = true
      reader.consumer.view?.close()
    })
  }

  /** Others take nearly all of one kind of memory, for a while or to the end. */
  #squeeze(): void {
    const { ledger, clock } = this.#bench
    if (this.#draw(2) === 1) {
      const free = ledger.partBytes('control') - ledger.usedBytes('control')
      const bytes = Math.max(0, free - this.#draw(3000))
      const taken = ledger.tryReserve({ purpose: 'control', bytes })
      if (taken !== undefined)
        this.#held.push(() => {
          taken.release()
        })
      if (this.#draw(2) === 1) clock.schedule(this.#draw(20_000), this.#giveBack)
      return
    }
    const count = Math.max(0, ledger.freeCount('read') - this.#draw(3))
    const taken = ledger.tryAcquire({ purpose: 'read', count }) ?? []
    for (const buffer of taken)
      this.#held.push(() => {
        buffer.recycle()
      })
    clock.schedule(this.#draw(5000), this.#giveBack)
  }

  readonly #giveBack = (): void => {
    for (const release of this.#held.splice(0)) release()
  }

  #check(reader: Reader): void {
    if (reader.isClosed || reader.refusal !== undefined) return
    const { consumer, list, dropped } = reader
    expect(consumer.unfinishedRunsMost).toBeLessThanOrEqual(unfinishedRunsMax)
    const { failing, released } = this.#bench.disk
    for (const [index, entry] of list.entries()) {
      if (dropped.has(index)) continue
      const received = consumer.partition(index)
      const mayFail = failing.has(entry.partition) || released.has(entry.partition)
      if (mayFail && received.error !== undefined) continue
      const { finish, entryCount, byteCount, payloads } = received
      expect(finish, `entry ${String(index)}`).toMatchObject({ entryCount, byteCount })
      const isAsStored = Buffer.concat(payloads).equals(Buffer.concat(this.#stored(entry)))
      expect(isAsStored, `bytes of entry ${String(index)}`).toBe(true)
    }
  }

  #stored({ partition, first, last }: Listed): Uint8Array[] {
    const count = last - first + 1
    return (this.#contents[partition] ?? []).flatMap((region) =>
      region.kind === 'broadcast'
        ? Array.from({ length: count }, () => region.run).flat()
        : region.runs.slice(first, last + 1).flat(),
    )
  }
}

function hasEnded({ isClosed, refusal, consumer }: Reader): boolean {
  return isClosed || refusal !== undefined || consumer.finish !== undefined
}
