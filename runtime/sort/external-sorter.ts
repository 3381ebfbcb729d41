// Sorts any number of records in bounded memory: what fits is sorted in an arena, what doesn't is
// spilled as sorted runs and merged at the end. One task owns a sorter; file calls are synchronous
// because the sort that they belong to is, and a task process does nothing else meanwhile.
//
//   add ─> arena ─ full ─> sort ─> run ─┐
//                                       ├─> (merge while there are too many) ─> merge ─> sink
//   add, larger than the arena ──> run ─┘

import { ok as assert } from 'node:assert/strict'
import { RecordArena } from './record-arena.ts'
import { addCounts, countBytes } from './record-count.ts'
import { compareBytes } from './record-order.ts'
import { RunCursor, windowBytesMin } from './run-cursor.ts'
import { RunMerger, type SortedSink } from './run-merger.ts'
import { SpillFile, type Run, type RunWriter } from './spill-file.ts'

export interface ExternalSorterOptions {
  /** Bound of the arena, which the windows of the merge take over. */
  readonly memoryBytes: number
  readonly directory: string
  /** Part of the spill file's name; unique in the directory. */
  readonly name: string
  /** Records end in a count; equal keys become one record with the sum. */
  readonly hasCounts: boolean
  /** Most runs merged at a time; what `memoryBytes` allows unless stated. */
  readonly mergedRunsMax?: number
}

/** Records in order, one after another. */
export interface SortedRecords {
  readonly isAtEnd: boolean
  /** Hands the next record to the sink. */
  next(sink: SortedSink): void
}

/** More windows than this gain nothing and cost seeks. */
const mergedRunsLimit = 512
const windowBytesWanted = 64 * 1024
const windowBytesMax = 1024 * 1024

export class ExternalSorter {
  readonly #options: ExternalSorterOptions
  readonly #trailerBytes: number
  readonly #mergedRunsMax: number
  #arena: RecordArena | undefined
  #spill: SpillFile | undefined
  #runs: Run[] = []

  constructor(options: ExternalSorterOptions) {
    this.#options = options
    this.#trailerBytes = options.hasCounts ? countBytes : 0
    this.#arena = new RecordArena({
      capacityBytes: options.memoryBytes,
      trailerBytes: this.#trailerBytes,
    })
    const byMemory = Math.floor(options.memoryBytes / windowBytesWanted) - 1
    this.#mergedRunsMax = Math.max(2, options.mergedRunsMax ?? Math.min(mergedRunsLimit, byMemory))
    assert(
      options.memoryBytes >= windowBytesMin * (this.#mergedRunsMax + 1),
      'the memory holds a window for every run of a merge',
    )
  }

  /** Bytes written to the spill file. */
  get spilledBytes(): number {
    return this.#spill?.sizeBytes ?? 0
  }

  /** Copies a record. */
  add(bytes: Uint8Array, start: number, end: number): void {
    const arena = this.#arena
    assert(arena !== undefined, 'a finished sorter takes no record')
    if (arena.add(bytes, start, end)) return
    this.#spillArena(arena)
    if (arena.canEverHold(end - start)) {
      assert(arena.add(bytes, start, end), 'a record that fits the empty arena is taken')
      return
    }
    const run = this.#file().writeRun((writer) => {
      writer.begin(end - start)
      writer.put(bytes, start, end)
    })
    this.#runs.push(run)
  }

  /** All records in order; no record is added after it. */
  finish(): SortedRecords {
    const arena = this.#arena
    assert(arena !== undefined, 'a sorter finishes once')
    this.#arena = undefined
    if (this.#runs.length === 0) return new ArenaRecords(arena, this.#trailerBytes)
    this.#spillArena(arena)
    const memory = arena.bytes
    while (this.#runs.length > this.#mergedRunsMax) this.#mergeFirst(memory)
    return this.#merger(this.#runs, memory)
  }

  /** Frees the spill file. Idempotent. */
  close(): void {
    this.#arena = undefined
    this.#spill?.close()
    this.#spill = undefined
  }

  #file(): SpillFile {
    this.#spill ??= new SpillFile(this.#options.directory, this.#options.name)
    return this.#spill
  }

  #spillArena(arena: RecordArena): void {
    if (arena.count === 0) return
    const records = new ArenaRecords(arena, this.#trailerBytes)
    const run = this.#file().writeRun((writer) => {
      records.write(writer)
    })
    this.#runs.push(run)
    arena.clear()
  }

  /** The oldest runs become one, so that in the end one merge has windows for all. */
  #mergeFirst(memory: Uint8Array): void {
    const merger = this.#merger(this.#runs.slice(0, this.#mergedRunsMax), memory)
    const trailerBytes = this.#trailerBytes
    const run = this.#file().writeRun((writer) => {
      const sink: SortedSink = {
        key: (bytes, from, to) => {
          writer.put(bytes, from, to)
        },
        end: (count) => {
          if (count !== undefined) writer.put(count, 0, trailerBytes)
        },
      }
      while (!merger.isAtEnd) {
        writer.begin(merger.keyLength + trailerBytes)
        merger.next(sink)
      }
    })
    this.#runs = [...this.#runs.slice(this.#mergedRunsMax), run]
  }

  #merger(runs: readonly Run[], memory: Uint8Array): RunMerger {
    const file = this.#file()
    const size = Math.min(windowBytesMax, Math.floor(memory.length / runs.length))
    const cursors = runs.map((run, index) => {
      const window = memory.subarray(index * size, (index + 1) * size)
      return new RunCursor({ file, run, window, trailerBytes: this.#trailerBytes })
    })
    return new RunMerger(cursors, this.#options.hasCounts)
  }
}

/** The records of an arena in order, equal keys with counts as one. */
class ArenaRecords implements SortedRecords {
  readonly #arena: RecordArena
  readonly #order: Uint32Array
  readonly #trailerBytes: number
  readonly #count = new Uint8Array(countBytes)
  readonly #otherCount = new Uint8Array(countBytes)
  #at = 0

  constructor(arena: RecordArena, trailerBytes: number) {
    this.#arena = arena
    this.#order = arena.sort()
    this.#trailerBytes = trailerBytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#order.length
  }

  next(sink: SortedSink): void {
    const record = this.#take()
    sink.key(this.#arena.bytes, this.#arena.startOf(record), this.#keyEnd(record))
    sink.end(this.#trailerBytes > 0 ? this.#count : undefined)
  }

  write(writer: RunWriter): void {
    while (!this.isAtEnd) {
      const record = this.#take()
      const start = this.#arena.startOf(record)
      const end = this.#keyEnd(record)
      writer.begin(end - start + this.#trailerBytes)
      writer.put(this.#arena.bytes, start, end)
      if (this.#trailerBytes > 0) writer.put(this.#count, 0, countBytes)
    }
  }

  /** The next record; with counts, those of the equal ones after it are added and passed by. */
  #take(): number {
    const record = this.#order[this.#at++]
    assert(record !== undefined, 'records at their end have no next')
    if (this.#trailerBytes === 0) return record
    this.#readCount(record, this.#count)
    const other = this.#otherCount
    for (let next = this.#order[this.#at]; next !== undefined; next = this.#order[this.#at]) {
      if (!this.#isSameKey(record, next)) break
      this.#readCount(next, other)
      addCounts(this.#count, other)
      this.#at += 1
    }
    return record
  }

  #keyEnd(record: number): number {
    return this.#arena.endOf(record) - this.#trailerBytes
  }

  #readCount(record: number, target: Uint8Array): void {
    const start = this.#keyEnd(record)
    for (let index = 0; index < countBytes; index++) {
      target[index] = this.#arena.bytes[start + index] ?? 0
    }
  }

  #isSameKey(a: number, b: number): boolean {
    const { bytes } = this.#arena
    const aStart = this.#arena.startOf(a)
    const bStart = this.#arena.startOf(b)
    return compareBytes(bytes, aStart, this.#keyEnd(a), bytes, bStart, this.#keyEnd(b)) === 0
  }
}
