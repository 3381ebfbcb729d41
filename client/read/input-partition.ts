// One input of a gate: a range of subpartitions of one partition, and how far it has been received.
// What it accepts has been checked: the order of runs, the position of each entry in its run (by the
// checksum, which covers it), the totals at the end. So after a cut it knows to the byte where to go
// on, and nothing is handed out twice or left out. Owned by the gate, passed between its readers.
//
//   waiting ──entry──> reading ──PartitionFinish──> finished
//      └────────────────── any fault ──────────────────┴──> failed ──reset──> waiting

import { ShuffleError, type ErrorFields } from '../common/errors.ts'
import type { ShuffleDescriptor, ShuffleHolder } from '../master/shuffle-descriptor.ts'
import {
  broadcastSubpartition,
  EntryChecksum,
  entryHeaderLength,
  type EntryReader,
} from '../protocol/entry.ts'
import {
  fromBeginning,
  type PartitionListEntry,
  type ReadStart,
} from '../protocol/partition-list.ts'
import { RecordAssembler } from './record-assembler.ts'

export interface InputRange {
  readonly inputIndex: number
  readonly descriptor: ShuffleDescriptor
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  readonly isPending: boolean
}

export type InputState = 'waiting' | 'reading' | 'finished' | 'failed'

export class InputPartition {
  readonly inputIndex: number
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  readonly isPending: boolean
  readonly records: RecordAssembler
  #descriptor: ShuffleDescriptor
  #checksum: EntryChecksum | undefined
  #state: InputState = 'waiting'
  #failure: ShuffleError | undefined
  #generation = 0
  #isBegun = false
  #regionIndex = 0
  #subpartition = 0
  #runBytes = 0
  #position = 0
  #isRunOpen = false
  #hasRun = false
  #entryCount = 0
  #byteCount = 0

  constructor(range: InputRange, options: { readonly recordBytesMax: number }) {
    this.inputIndex = range.inputIndex
    this.#descriptor = range.descriptor
    this.firstSubpartition = range.firstSubpartition
    this.lastSubpartition = range.lastSubpartition
    this.isPending = range.isPending
    this.records = new RecordAssembler(options)
  }

  get descriptor(): ShuffleDescriptor {
    return this.#descriptor
  }

  get holder(): ShuffleHolder {
    const [holder] = this.#descriptor.holders
    if (holder === undefined) throw this.error('INVALID_ARGUMENT', 'the descriptor names no worker')
    return holder
  }

  get state(): InputState {
    return this.#state
  }

  get failure(): ShuffleError | undefined {
    return this.#failure
  }

  /** Whether anything of it was handed out to the consumer. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** What was received in an earlier generation is dropped, not handed out. */
  get generation(): number {
    return this.#generation
  }

  /** Whether a run has begun and not ended: the consumer may hold half a record of it. */
  get isRunOpen(): boolean {
    return this.#isRunOpen
  }

  get entryCount(): number {
    return this.#entryCount
  }

  get byteCount(): number {
    return this.#byteCount
  }

  get fields(): ErrorFields {
    const { key, holders } = this.#descriptor
    return { ...key, workerId: holders[0]?.workerId, inputIndex: this.inputIndex }
  }

  /** Its line in the list of a channel: from where it stands. */
  listEntry(index: number): PartitionListEntry {
    return {
      index,
      key: this.#descriptor.key,
      firstSubpartition: this.firstSubpartition,
      lastSubpartition: this.lastSubpartition,
      start: this.start,
      isPending: this.isPending,
    }
  }

  /** Just behind the last entry received. */
  get start(): ReadStart {
    if (!this.#hasRun) return fromBeginning
    return {
      regionIndex: this.#regionIndex,
      subpartition: this.#subpartition,
      byteOffset: this.#runBytes,
    }
  }

  /** The entries that follow are of this run. Throws when a run cannot follow here. */
  enterRun(regionIndex: number, subpartition: number): void {
    if (this.#hasRun && regionIndex === this.#regionIndex && subpartition === this.#subpartition) {
      if (!this.#isRunOpen) throw this.#corrupt('a run goes on behind its end')
      return
    }
    if (this.#isRunOpen) throw this.#corrupt('a run ends without its last entry')
    if (subpartition < this.firstSubpartition || subpartition > this.lastSubpartition) {
      throw this.#corrupt(`subpartition ${String(subpartition)} was not asked for`)
    }
    const goesBack =
      regionIndex < this.#regionIndex ||
      (regionIndex === this.#regionIndex && subpartition < this.#subpartition)
    if (this.#hasRun && goesBack) throw this.#corrupt('runs are out of order')
    this.#hasRun = true
    this.#isRunOpen = true
    this.#regionIndex = regionIndex
    this.#subpartition = subpartition
    this.#runBytes = 0
    this.#position = 0
  }

  /** Checks the entry that `entry` stands on and counts it as received. */
  accept(entry: EntryReader): void {
    if (!this.#isRunOpen) throw this.#corrupt('a run goes on behind its end')
    const { subpartition } = entry
    if (subpartition !== this.#subpartition && subpartition !== broadcastSubpartition) {
      throw this.#corrupt(`an entry of subpartition ${String(subpartition)} stands in another run`)
    }
    this.#checksum ??= new EntryChecksum(this.#descriptor.key)
    const checksum = this.#checksum.of(
      {
        regionIndex: this.#regionIndex,
        subpartition,
        position: this.#position,
        flags: entry.flags,
        type: entry.type,
      },
      entry.payload(),
    )
    if (checksum !== entry.checksum) throw this.#corrupt('the checksum does not match')
    const byteCount = entryHeaderLength + entry.length
    this.#state = 'reading'
    this.#position += 1
    this.#runBytes += byteCount
    this.#entryCount += 1
    this.#byteCount += byteCount
    if (entry.isLastOfRun) this.#isRunOpen = false
  }

  /** The worker has sent all of it: compares the totals with what was received, over all channels. */
  finish(totals: { readonly entryCount: number; readonly byteCount: number }): void {
    if (
      this.#isRunOpen ||
      totals.entryCount !== this.#entryCount ||
      totals.byteCount !== this.#byteCount
    ) {
      throw this.error(
        'COUNT_MISMATCH',
        `received ${String(this.#entryCount)} entries of ${String(this.#byteCount)} bytes, the worker counts ${String(totals.entryCount)} of ${String(totals.byteCount)}`,
      )
    }
    this.#state = 'finished'
  }

  /** From now on it may not be replaced by another attempt. */
  begin(): void {
    this.#isBegun = true
  }

  fail(failure: ShuffleError): void {
    this.#state = 'failed'
    this.#failure = failure
    this.#generation += 1
    this.records.reset()
  }

  /** Another holder of the same bytes: goes on where it stands, what is queued stays. */
  move(descriptor: ShuffleDescriptor): void {
    this.#descriptor = descriptor
  }

  /** From the beginning, nothing having been handed out. */
  reset(descriptor: ShuffleDescriptor): void {
    this.#descriptor = descriptor
    this.#checksum = undefined
    this.#state = 'waiting'
    this.#failure = undefined
    this.#generation += 1
    this.records.reset()
    this.#hasRun = false
    this.#isRunOpen = false
    this.#regionIndex = 0
    this.#subpartition = 0
    this.#runBytes = 0
    this.#position = 0
    this.#entryCount = 0
    this.#byteCount = 0
  }

  error(code: ShuffleError['code'], message: string): ShuffleError {
    return new ShuffleError(code, message, { fields: this.fields })
  }

  #corrupt(message: string): ShuffleError {
    return new ShuffleError('DATA_CORRUPT', message, {
      fields: {
        ...this.fields,
        regionIndex: this.#regionIndex,
        subpartition: this.#subpartition,
        position: this.#position,
      },
    })
  }
}
