// Turns received entries into batches, in the order in which they came: uncompresses a few ahead on
// other threads, finds the records, keeps a half record for the entry that completes it. What it
// holds is bounded by the gate's pool (bodies) and by `aheadBytesMax` (uncompressed bytes that were
// not yet recycled). Owned by one gate.
//
//   push ─> | entry | entry | entry | ─> poll ─> batch ─> recycle
//             ready   in work  in work           frees its body, or its uncompressed bytes

import type { Compute } from '../common/compute.ts'
import { ShuffleError } from '../common/errors.ts'
import { compressedPrefixLength, entryPayloadMax, entryTypes } from '../protocol/entry.ts'
import { withFields } from '../transport/error-fields.ts'
import type { InputPartition } from './input-partition.ts'
import type { ReceivedEntry } from './received-entry.ts'
import { EventBatch, RecordBatch, type BatchOrigin, type GateBatch } from './record-batch.ts'

export interface BufferUnpackerOptions {
  readonly compute: Compute
  /** Entries in work on other threads at a time. */
  readonly parallelism: number
  readonly aheadBytesMax: number
  /** `poll` may have something now. */
  readonly onReady: () => void
  /** An entry of the partition could not be unpacked. */
  readonly onFailed: (partition: InputPartition, error: ShuffleError) => void
}

interface Item {
  readonly entry: ReceivedEntry
  state: 'queued' | 'working' | 'ready' | 'dropped'
  /** When ready: the uncompressed payload. */
  bytes: Uint8Array
  /** Uncompressed bytes counted as ahead; 0 when the payload lies in the body. */
  aheadBytes: number
  /** Why it cannot be uncompressed; told when its turn comes, never from within `push`. */
  fault: unknown
}

const knownTypes: readonly number[] = Object.values(entryTypes)

export class BufferUnpacker {
  readonly #options: BufferUnpackerOptions
  /** What has left it is gone at once: it may hold uncompressed memory. */
  #queue: (Item | undefined)[] = []
  /** Items before it have left the queue. */
  #head = 0
  /** Items before it are in work or ready. */
  #nextToStart = 0
  #working = 0
  #aheadBytes = 0
  #closed = false

  constructor(options: BufferUnpackerOptions) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#head === this.#queue.length
  }

  /** Entries on other threads now. */
  get workingCount(): number {
    return this.#working
  }

  /** Takes the entry; its body is released when it is done with, on every path. */
  push(entry: ReceivedEntry): void {
    if (this.#closed) {
      entry.body.release()
      return
    }
    this.#queue.push({
      entry,
      state: 'queued',
      bytes: entry.payload,
      aheadBytes: 0,
      fault: undefined,
    })
    this.#startNext()
  }

  /** The next batch, when the oldest entry is ready. */
  poll(): GateBatch | undefined {
    for (;;) {
      const item = this.#queue[this.#head]
      if (item === undefined) return undefined
      if (item.state !== 'dropped' && isStale(item)) this.#drop(item)
      if (item.state === 'queued' || item.state === 'working') return undefined
      this.#shift()
      if (item.state === 'dropped') continue
      const batch = this.#unpack(item)
      if (batch !== undefined) return batch
    }
  }

  /** Drops what is queued of a partition that failed or was reset. */
  discardStale(): void {
    for (let index = this.#head; index < this.#queue.length; index += 1) {
      const item = this.#queue[index]
      if (item !== undefined && item.state !== 'dropped' && isStale(item)) this.#drop(item)
    }
  }

  /** Drops everything. Bodies in work are released when the work ends. Idempotent. */
  close(): void {
    this.#closed = true
    for (let index = this.#head; index < this.#queue.length; index += 1) {
      const item = this.#queue[index]
      if (item !== undefined && item.state !== 'dropped') this.#drop(item)
    }
    this.#queue = []
    this.#head = 0
    this.#nextToStart = 0
  }

  #startNext(): void {
    const { parallelism, aheadBytesMax } = this.#options
    while (!this.#closed && this.#nextToStart < this.#queue.length) {
      if (this.#working >= parallelism) return
      if (this.#aheadBytes >= aheadBytesMax) return
      const item = this.#queue[this.#nextToStart]
      this.#nextToStart += 1
      if (item?.state === 'queued') this.#start(item)
    }
  }

  #start(item: Item): void {
    const { entry } = item
    if (!entry.isCompressed) {
      item.state = 'ready'
      return
    }
    const sizeBytes = uncompressedSize(entry)
    if (sizeBytes === undefined) {
      item.state = 'ready'
      item.fault = new ShuffleError('DATA_CORRUPT', 'a compressed entry has an impossible size')
      return
    }
    item.state = 'working'
    item.aheadBytes = sizeBytes
    this.#aheadBytes += sizeBytes
    this.#working += 1
    const block = entry.payload.subarray(compressedPrefixLength)
    this.#options.compute.uncompress(block, sizeBytes).then(
      (bytes) => {
        this.#finishWork(item, bytes, undefined)
      },
      (error: unknown) => {
        this.#finishWork(item, entry.payload, error)
      },
    )
  }

  #finishWork(item: Item, bytes: Uint8Array, error: unknown): void {
    this.#working -= 1
    item.entry.body.release()
    if (item.state === 'dropped') {
      this.#giveAhead(item)
    } else {
      item.state = 'ready'
      item.bytes = bytes
      item.fault = error
    }
    this.#startNext()
    if (!this.#closed) this.#options.onReady()
  }

  #unpack(item: Item): GateBatch | undefined {
    const { entry, bytes } = item
    const { partition } = entry
    try {
      if (item.fault !== undefined) throw item.fault as Error
      if (entry.type !== entryTypes.data) return this.#unpackEvent(item)
      const found = partition.records.add(bytes)
      if (entry.isLastOfRun && !partition.records.isWhole) throw cutOff()
      if (found.recordCount === 0) {
        this.#release(item)
        return undefined
      }
      return new RecordBatch({
        origin: originOf(entry),
        ...found,
        memory: bytes,
        release: () => {
          this.#release(item)
          // One that waited for this memory alone may be ready at once.
          if (this.#queue[this.#head]?.state === 'ready') this.#options.onReady()
        },
      })
    } catch (error) {
      this.#fail(item, error)
      return undefined
    }
  }

  #unpackEvent(item: Item): GateBatch {
    const { entry, bytes } = item
    if (!entry.partition.records.isWhole) throw cutOff()
    if (!knownTypes.includes(entry.type)) {
      throw new ShuffleError('DATA_CORRUPT', `an entry has the unknown type ${String(entry.type)}`)
    }
    const batch = new EventBatch({
      origin: originOf(entry),
      code: entry.type,
      bytes: new Uint8Array(bytes),
    })
    this.#release(item)
    return batch
  }

  #fail(item: Item, error: unknown): void {
    const { partition } = item.entry
    this.#drop(item)
    const failure = withFields(error, partition.fields)
    this.#options.onFailed(partition, failure)
  }

  /** It gives no batch. What other threads read of it is kept until they are done. */
  #drop(item: Item): void {
    const wasWorking = item.state === 'working'
    if (!wasWorking) this.#release(item)
    item.state = 'dropped'
  }

  /** Gives back what a ready or queued item holds. */
  #release(item: Item): void {
    if (item.aheadBytes === 0) item.entry.body.release()
    else this.#giveAhead(item)
    this.#startNext()
  }

  #giveAhead(item: Item): void {
    this.#aheadBytes -= item.aheadBytes
    item.aheadBytes = 0
  }

  #shift(): void {
    this.#queue[this.#head] = undefined
    this.#head += 1
    this.#nextToStart = Math.max(this.#nextToStart, this.#head)
    if (this.#head < 1024 || this.#head * 2 < this.#queue.length) return
    this.#queue.splice(0, this.#head)
    this.#nextToStart -= this.#head
    this.#head = 0
  }
}

function isStale(item: Item): boolean {
  return item.entry.generation !== item.entry.partition.generation
}

function originOf(entry: ReceivedEntry): BatchOrigin {
  return {
    inputIndex: entry.partition.inputIndex,
    key: entry.partition.descriptor.key,
    subpartition: entry.subpartition,
    regionIndex: entry.regionIndex,
  }
}

/** As the payload says it; undefined when no entry of the data set can be so long. */
function uncompressedSize(entry: ReceivedEntry): number | undefined {
  const { payload, partition } = entry
  if (payload.length <= compressedPrefixLength) return undefined
  const sizeBytes = new DataView(payload.buffer, payload.byteOffset).getUint32(0)
  if (sizeBytes === 0 || sizeBytes > entryPayloadMax(partition.descriptor.bufferSizeBytes)) {
    return undefined
  }
  return sizeBytes
}

function cutOff(): ShuffleError {
  return new ShuffleError('DATA_CORRUPT', 'a run ends within a record')
}
