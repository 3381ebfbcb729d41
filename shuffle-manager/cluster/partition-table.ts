// The partitions of one data set, as columns of typed arrays: a million tracked partitions take tens
// of megabytes. A row is one attempt; rows of the same partition index are chained. Owned by its job.
//
//   head[partitionIndex] -> row -> next[row] -> … -> -1        free rows are chained the same way
//   row: index, worker, state, flags, epochs, sequence, bytes, attempt = prefixes[prefix] + suffix

import { assert } from '../../client/common/assert.ts'
import type { AllocationId, AttemptId, DataSetId, JobId } from '../../client/common/ids.ts'
import type { DataSetFacts } from '../../client/manager/schemas.ts'

/** A row of a table of a job: table number * 2^32 + row. */
export type RowRef = number

export const rowStates = ['allocated', 'writing', 'committed', 'lost', 'releasing'] as const
export type RowState = (typeof rowStates)[number]

const rowsFirst = 64
const prefixesMax = 256

/** Indices up to here are found through an array; others, which no sane job has, through a map. */
const arrayIndexMax = 16_000_000

export const rowFlags = {
  /** In the job master's list. */
  claimed: 1,
  /** Reported by its worker, in the worker's present registration. */
  held: 2,
  /** The job master has been told of the commit. */
  commitTold: 4,
  /** It has been allocated and not been opened for a while. */
  aged: 8,
  /** For that the job master was asked about it. */
  doubted: 16,
  /** The job master has answered that it is in its list. */
  confirmed: 32,
} as const

export class PartitionTable {
  readonly number: number
  readonly jobId: JobId
  readonly dataSetId: DataSetId
  facts: DataSetFacts | undefined
  /** Rows by worker number. */
  readonly countsByWorker = new Map<number, number>()

  #version = 0
  #rowCount = 0
  #rowsUsed = 0
  #free = -1
  #capacity = rowsFirst
  #head = new Int32Array(0)
  readonly #farHead = new Map<number, number>()
  #index = new Uint32Array(rowsFirst)
  #next = new Int32Array(rowsFirst)
  #worker = new Uint32Array(rowsFirst)
  #state = new Uint8Array(rowsFirst)
  #flags = new Uint8Array(rowsFirst)
  #epochs = new Uint32Array(rowsFirst)
  #prefix = new Uint16Array(rowsFirst)
  #sequence = new Float64Array(rowsFirst)
  #bytes = new Float64Array(rowsFirst)
  readonly #suffixes: (string | undefined)[] = []
  readonly #prefixes: string[] = ['']
  readonly #epochPairs: { readonly managerEpoch: number; readonly jobEpoch: number }[] = []

  constructor(options: {
    readonly number: number
    readonly jobId: JobId
    readonly dataSetId: DataSetId
  }) {
    this.number = options.number
    this.jobId = options.jobId
    this.dataSetId = options.dataSetId
  }

  get rowCount(): number {
    return this.#rowCount
  }

  /** Changes with every change of a row. */
  get version(): number {
    return this.#version
  }

  touch(): void {
    this.#version++
  }

  ref(row: number): RowRef {
    return this.number * 2 ** 32 + row
  }

  /** The row of this attempt, or -1. */
  find(partitionIndex: number, attemptId: AttemptId): number {
    for (let row = this.#first(partitionIndex); row >= 0; row = this.#next[row] ?? -1) {
      if (this.#isAttempt(row, attemptId)) return row
    }
    return -1
  }

  insert(fields: {
    readonly partitionIndex: number
    readonly attemptId: AttemptId
    readonly worker: number
    readonly state: RowState
    readonly allocation: AllocationId
  }): number {
    const row = this.#takeRow()
    this.#index[row] = fields.partitionIndex
    this.#next[row] = this.#first(fields.partitionIndex)
    this.#setFirst(fields.partitionIndex, row)
    this.#worker[row] = fields.worker
    this.#state[row] = rowStates.indexOf(fields.state)
    this.#flags[row] = 0
    this.#bytes[row] = 0
    this.setAllocation(row, fields.allocation)
    this.#setAttempt(row, fields.attemptId)
    this.#count(fields.worker, 1)
    this.#rowCount++
    this.#version++
    return row
  }

  remove(row: number): void {
    assert(this.isLive(row), 'only a live row is removed')
    const partitionIndex = this.index(row)
    let before = -1
    let at = this.#first(partitionIndex)
    while (at !== row) {
      before = at
      at = this.#next[at] ?? -1
    }
    const after = this.#next[row] ?? -1
    if (before < 0) this.#setFirst(partitionIndex, after)
    else this.#next[before] = after
    this.#count(this.worker(row), -1)
    this.#suffixes[row] = undefined
    this.#next[row] = this.#free
    this.#free = row
    this.#rowCount--
    this.#version++
  }

  /** Live rows. Removing the row at hand while iterating is fine. */
  *rows(): Generator<number> {
    for (let row = 0; row < this.#rowsUsed; row++) {
      if (this.isLive(row)) yield row
    }
  }

  isLive(row: number): boolean {
    return this.#suffixes[row] !== undefined
  }

  index(row: number): number {
    return this.#index[row] ?? 0
  }

  attemptId(row: number): AttemptId {
    return `${this.#prefixes[this.#prefix[row] ?? 0] ?? ''}${this.#suffixes[row] ?? ''}` as AttemptId
  }

  worker(row: number): number {
    return this.#worker[row] ?? 0
  }

  setWorker(row: number, worker: number): void {
    this.#count(this.worker(row), -1)
    this.#worker[row] = worker
    this.#count(worker, 1)
  }

  state(row: number): RowState {
    return rowStates[this.#state[row] ?? 0] ?? 'allocated'
  }

  setState(row: number, state: RowState): void {
    this.#state[row] = rowStates.indexOf(state)
  }

  has(row: number, flag: keyof typeof rowFlags): boolean {
    return ((this.#flags[row] ?? 0) & rowFlags[flag]) !== 0
  }

  setFlag(row: number, flag: keyof typeof rowFlags, value: boolean): void {
    const flags = this.#flags[row] ?? 0
    this.#flags[row] = value ? flags | rowFlags[flag] : flags & ~rowFlags[flag]
  }

  bytes(row: number): number {
    return this.#bytes[row] ?? 0
  }

  setBytes(row: number, bytes: number): void {
    this.#bytes[row] = bytes
  }

  allocation(row: number): AllocationId {
    const pair = this.#epochPairs[this.#epochs[row] ?? 0]
    assert(pair !== undefined, 'a row has its epochs')
    return { ...pair, sequence: this.#sequence[row] ?? 0 }
  }

  setAllocation(row: number, allocation: AllocationId): void {
    this.#sequence[row] = allocation.sequence
    const { managerEpoch, jobEpoch } = allocation
    let at = this.#epochPairs.findLastIndex(
      (pair) => pair.managerEpoch === managerEpoch && pair.jobEpoch === jobEpoch,
    )
    if (at < 0) at = this.#epochPairs.push({ managerEpoch, jobEpoch }) - 1
    this.#epochs[row] = at
  }

  #first(partitionIndex: number): number {
    if (partitionIndex >= arrayIndexMax) return this.#farHead.get(partitionIndex) ?? -1
    return (this.#head[partitionIndex] ?? 0) - 1
  }

  /** Stored plus one, so that 0, what a new array holds, means none. */
  #setFirst(partitionIndex: number, row: number): void {
    if (partitionIndex >= arrayIndexMax) {
      if (row < 0) this.#farHead.delete(partitionIndex)
      else this.#farHead.set(partitionIndex, row)
      return
    }
    if (partitionIndex >= this.#head.length) {
      const grown = new Int32Array(Math.max(rowsFirst, this.#head.length * 2, partitionIndex + 1))
      grown.set(this.#head)
      this.#head = grown
    }
    this.#head[partitionIndex] = row + 1
  }

  #takeRow(): number {
    if (this.#free >= 0) {
      const row = this.#free
      this.#free = this.#next[row] ?? -1
      return row
    }
    if (this.#rowsUsed === this.#capacity) this.#grow()
    return this.#rowsUsed++
  }

  #grow(): void {
    this.#capacity *= 2
    const grow = <T extends Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array>(
      from: T,
      to: T,
    ): T => {
      to.set(from)
      return to
    }
    this.#index = grow(this.#index, new Uint32Array(this.#capacity))
    this.#next = grow(this.#next, new Int32Array(this.#capacity))
    this.#worker = grow(this.#worker, new Uint32Array(this.#capacity))
    this.#state = grow(this.#state, new Uint8Array(this.#capacity))
    this.#flags = grow(this.#flags, new Uint8Array(this.#capacity))
    this.#epochs = grow(this.#epochs, new Uint32Array(this.#capacity))
    this.#prefix = grow(this.#prefix, new Uint16Array(this.#capacity))
    this.#sequence = grow(this.#sequence, new Float64Array(this.#capacity))
    this.#bytes = grow(this.#bytes, new Float64Array(this.#capacity))
  }

  #isAttempt(row: number, attemptId: string): boolean {
    const prefix = this.#prefixes[this.#prefix[row] ?? 0] ?? ''
    const suffix = this.#suffixes[row] ?? ''
    return (
      attemptId.length === prefix.length + suffix.length &&
      attemptId.endsWith(suffix) &&
      attemptId.startsWith(prefix)
    )
  }

  /** Runtimes number attempts: what stands before the numbers is the same for the whole data set. */
  #setAttempt(row: number, attemptId: string): void {
    const prefix = attemptId.slice(0, attemptId.length - numberedTailLength(attemptId))
    let at = this.#prefixes.lastIndexOf(prefix)
    if (at < 0 && this.#prefixes.length < prefixesMax) at = this.#prefixes.push(prefix) - 1
    const isFactored = at >= 0
    this.#prefix[row] = isFactored ? at : 0
    this.#suffixes[row] = ownCopy(isFactored ? attemptId.slice(prefix.length) : attemptId)
  }

  #count(worker: number, by: number): void {
    const count = (this.countsByWorker.get(worker) ?? 0) + by
    assert(count >= 0, 'rows of a worker are counted down only as often as up')
    if (count === 0) this.countsByWorker.delete(worker)
    else this.countsByWorker.set(worker, count)
  }
}

const tailLengthMax = 20

function numberedTailLength(attemptId: string): number {
  let length = 0
  while (length < tailLengthMax && length < attemptId.length) {
    const code = attemptId.charCodeAt(attemptId.length - 1 - length)
    const isDigit = code >= 0x30 && code <= 0x39
    if (!isDigit && code !== 0x5f) break
    length++
  }
  return length
}

/** V8 keeps the whole page alive for a slice of 13 characters or more of one of its strings. */
function ownCopy(text: string): string {
  return text.length < 13 ? text : Buffer.from(text, 'latin1').toString('latin1')
}
