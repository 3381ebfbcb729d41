// The fake worker's side of a read: serves the list under credit, several partitions interleaved, and
// checks that the credit it is given was announced.

import { expect } from 'vitest'
import { partitionKeyText } from '../../../client/common/ids.ts'
import { ShuffleError, type ErrorCode } from '../../../client/common/errors.ts'
import { messages, type MessageFields } from '../../../client/protocol/messages.ts'
import {
  decodePartitionList,
  type PartitionListEntry,
} from '../../../client/protocol/partition-list.ts'
import type { ChannelMessage } from '../../../client/protocol/protocol-connection.ts'
import { segmentHeaderLength, writeSegmentHeader } from '../../../client/protocol/read-segment.ts'
import { wireErrorFields } from '../../../client/protocol/wire-error.ts'
import type { FakeConnection, StoredEntry, StoredPartition } from './fake-worker.ts'

interface Run {
  readonly regionIndex: number
  readonly subpartition: number
  readonly entries: StoredEntry[]
}

interface Served {
  readonly index: number
  readonly runs: Run[]
  readonly entryCount: number
  readonly byteCount: number
}

/** Partitions that take turns in one body. */
const interleaved = 3

export class FakeReadChannel {
  readonly #connection: FakeConnection
  readonly #id: number
  readonly #open: MessageFields<'OpenRead'>
  #served: Served[] = []
  #listLength = 0
  #isListEnded = false
  #credit: number
  #backlog = 0
  #announcedMax = 0
  #frames = 0
  #entries = 0
  #bytes = 0

  constructor(connection: FakeConnection, id: number, open: MessageFields<'OpenRead'>) {
    this.#connection = connection
    this.#id = id
    this.#open = open
    this.#credit = open.initialCredit
    expect(open.initialCredit).toBe(2)
    if (!connection.worker.faults.withholdsOpening) {
      connection.protocol.send(messages.ReadOpened, id, {})
    }
  }

  get credit(): number {
    return this.#credit
  }

  onMessage(message: ChannelMessage, body: Uint8Array): void {
    switch (message.name) {
      case 'AddPartitions':
        expect(this.#isListEnded).toBe(false)
        for (const entry of decodePartitionList(body, message.fields.partitionCount)) {
          expect(entry.index).toBe(this.#listLength)
          this.#listLength += 1
          this.#add(entry)
        }
        break
      case 'ReadEnd':
        expect(message.fields.partitionCount).toBe(this.#listLength)
        this.#isListEnded = true
        break
      case 'AddCredit':
        this.#credit += message.fields.credit
        // Credit may answer any backlog told so far, less what was sent since.
        expect(this.#credit).toBeLessThanOrEqual(Math.max(2, this.#announcedMax - this.#frames))
        break
      case 'DropPartition':
        this.#served = this.#served.filter(({ index }) => index !== message.fields.partition)
        break
      default:
        throw new Error(`${message.name} on a read channel`)
    }
    this.pump()
  }

  /** Sends what credit allows. */
  pump(): void {
    const { faults } = this.#connection.worker
    if (faults.withholdsOpening) return
    this.#finishServed()
    this.#announce()
    while (
      !faults.withholdsData &&
      this.#served.length > 0 &&
      (this.#credit > 0 || faults.ignoresCredit)
    ) {
      this.#sendFrame()
      this.#finishServed()
      this.#announce()
    }
    this.#finishServed()
    if (!this.#isListEnded || this.#served.length > 0) return
    if (!this.#connection.reads.delete(this.#id)) return
    this.#connection.protocol.send(messages.ReadFinish, this.#id, {
      partitionCount: this.#listLength,
      frameCount: this.#frames,
      entryCount: this.#entries,
      byteCount: this.#bytes,
    })
  }

  #add(entry: PartitionListEntry): void {
    const text = partitionKeyText(entry.key)
    const { faults, partitions } = this.#connection.worker
    const failure = faults.failPartitions.get(text)?.shift()
    const stored = partitions.get(text)
    if (failure !== undefined) this.#fail(entry.index, failure)
    else if (stored !== undefined) this.#served.push(serve(entry, stored))
    else this.#fail(entry.index, entry.isPending ? 'PARTITION_NOT_READY' : 'PARTITION_NOT_FOUND')
  }

  #fail(partition: number, code: ErrorCode): void {
    const error = new ShuffleError(code, 'as the test wants it')
    this.#connection.protocol.send(messages.PartitionFailed, this.#id, {
      partition,
      ...wireErrorFields(error),
    })
  }

  #announce(): void {
    const left = this.#served.reduce((sum, { runs }) => sum + leftBytes(runs), 0)
    const bufferCount = Math.ceil(left / (this.#open.bufferSizeBytes / 2))
    if (bufferCount === this.#backlog && bufferCount !== 0) return
    if (bufferCount === 0 && this.#backlog === 0) return
    this.#backlog = bufferCount
    this.#announcedMax = Math.max(this.#announcedMax, bufferCount + this.#frames)
    this.#connection.protocol.send(messages.Backlog, this.#id, { bufferCount })
  }

  #sendFrame(): void {
    const body = new Uint8Array(this.#open.bufferSizeBytes)
    let length = 0
    let progress = true
    while (progress) {
      progress = false
      for (const served of this.#served.slice(0, interleaved)) {
        const end = this.#pack(served, body, length)
        if (end === length) continue
        length = end
        progress = true
      }
    }
    this.#frames += 1
    this.#credit -= 1
    this.#backlog = Math.max(0, this.#backlog - 1)
    this.#connection.protocol.send(messages.ReadData, this.#id, {}, [body.subarray(0, length)])
  }

  /** One segment of up to two entries, when it fits; the new end. */
  #pack(served: Served, body: Uint8Array, start: number): number {
    const run = served.runs[0]
    if (run === undefined) return start
    let end = start + segmentHeaderLength
    let count = 0
    for (; count < 2; count += 1) {
      const entry = run.entries[count]
      if (entry === undefined || end + entry.bytes.length > body.length) break
      const copy = entry.bytes.slice()
      this.#connection.worker.faults.corrupt?.(copy, this.#entries)
      body.set(copy, end)
      end += copy.length
      this.#entries += 1
      this.#bytes += copy.length
    }
    if (count === 0) return start
    writeSegmentHeader(body, start, {
      partition: served.index,
      regionIndex: run.regionIndex,
      subpartition: run.subpartition,
      byteLength: end - start - segmentHeaderLength,
    })
    run.entries.splice(0, count)
    if (run.entries.length === 0) served.runs.shift()
    return end
  }

  #finishServed(): void {
    const miscount = this.#connection.worker.faults.miscounts ? 1 : 0
    for (const served of this.#served.filter(({ runs }) => runs.length === 0)) {
      this.#connection.protocol.send(messages.PartitionFinish, this.#id, {
        partition: served.index,
        entryCount: served.entryCount + miscount,
        byteCount: served.byteCount,
      })
    }
    this.#served = this.#served.filter(({ runs }) => runs.length > 0)
  }
}

/** The runs of the range, from the start on; the totals are those of the whole range. */
function serve(entry: PartitionListEntry, stored: StoredPartition): Served {
  const runs: Run[] = []
  for (const [regionIndex, region] of stored.regions.entries()) {
    for (let sub = entry.firstSubpartition; sub <= entry.lastSubpartition; sub += 1) {
      const entries = region.entries.filter(
        ({ subpartition }) => region.isBroadcast || subpartition === sub,
      )
      if (entries.length > 0) runs.push({ regionIndex, subpartition: sub, entries })
    }
  }
  const all = runs.flatMap(({ entries }) => entries)
  return {
    index: entry.index,
    runs: fromStart(runs, entry),
    entryCount: all.length,
    byteCount: leftBytes(runs),
  }
}

function fromStart(runs: readonly Run[], { start }: PartitionListEntry): Run[] {
  const left: Run[] = []
  for (const run of runs) {
    const order = run.regionIndex - start.regionIndex || run.subpartition - start.subpartition
    if (order < 0) continue
    let skip = order === 0 ? start.byteOffset : 0
    const entries = run.entries.filter(({ bytes }) => {
      const isSkipped = skip > 0
      if (isSkipped) skip -= bytes.length
      return !isSkipped
    })
    expect(skip).toBe(0)
    if (entries.length > 0) left.push({ ...run, entries })
  }
  return left
}

function leftBytes(runs: readonly Run[]): number {
  return runs.flatMap(({ entries }) => entries).reduce((sum, { bytes }) => sum + bytes.length, 0)
}
