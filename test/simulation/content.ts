// What a producer attempt emits, made from its key alone, so that whoever reads it can say of every
// record whether it is the one that must come next. Attempts of one partition emit different bytes:
// two of them mixed show at the first record.

import { partitionKeyText, type PartitionKey } from '../../client/common/ids.ts'
import { VirtualRandom } from '../support/virtual-random.ts'

/** How much a producer emits and of what. */
export interface OutputShape {
  readonly recordCount: number
  /** Sizes are drawn up to this, small and large ones alike. */
  readonly recordBytesMax: number
  /** One record of this size somewhere; 0 for none. */
  readonly hugeRecordBytes: number
  readonly broadcastShare: number
  readonly eventShare: number
  /** Share of the subpartitions that get anything at all. */
  readonly usedShare: number
}

export interface Emission {
  /** Undefined: for every subpartition. */
  readonly subpartition: number | undefined
  /** Undefined for a record. */
  readonly eventCode: number | undefined
  readonly length: number
  readonly sequence: number
}

export class Content {
  readonly key: PartitionKey
  readonly subpartitionCount: number
  readonly emissions: readonly Emission[]
  readonly #bySubpartition: readonly (readonly Emission[])[]
  readonly #hash: number

  constructor(key: PartitionKey, subpartitionCount: number, shape: OutputShape) {
    this.key = key
    this.subpartitionCount = subpartitionCount
    const text = partitionKeyText(key)
    this.#hash = hashOf(text)
    const random = new VirtualRandom(text)
    this.emissions = draw(random, subpartitionCount, shape)
    const lists: Emission[][] = Array.from({ length: subpartitionCount }, () => [])
    for (const emission of this.emissions) {
      if (emission.subpartition === undefined) for (const list of lists) list.push(emission)
      else lists[emission.subpartition]?.push(emission)
    }
    this.#bySubpartition = lists
  }

  /** In the order in which a reader of the subpartition must get them. */
  of(subpartition: number): readonly Emission[] {
    return this.#bySubpartition[subpartition] ?? []
  }

  bytesOf(emission: Emission): Buffer {
    const bytes = Buffer.allocUnsafe(emission.length)
    const start = this.#startOf(emission)
    // Every second one is worth compressing.
    const step = emission.sequence % 2 === 0 ? 0 : 167
    for (let index = 0; index < bytes.length; index += 1) {
      bytes[index] = (start >>> ((index & 3) * 8)) + Math.imul(index >>> 2, step)
    }
    return bytes
  }

  #startOf(emission: Emission): number {
    return Math.imul(this.#hash ^ Math.imul(emission.sequence + 1, 0x9e3779b1), 0x85ebca6b) >>> 0
  }
}

function draw(
  random: VirtualRandom,
  subpartitionCount: number,
  shape: OutputShape,
): readonly Emission[] {
  const usedCount = Math.max(1, Math.ceil(subpartitionCount * shape.usedShare))
  const used = Array.from({ length: usedCount }, () => random.integer(subpartitionCount))
  const hugeAt = shape.hugeRecordBytes === 0 ? -1 : random.integer(shape.recordCount)
  return Array.from({ length: shape.recordCount }, (_, sequence): Emission => {
    const subpartition = random.chance(shape.broadcastShare)
      ? undefined
      : (used[random.integer(used.length)] ?? 0)
    const isEvent = random.chance(shape.eventShare)
    const drawn = Math.floor(2 ** random.between(0, Math.log2(shape.recordBytesMax + 1))) - 1
    return {
      subpartition,
      eventCode: isEvent ? 1 + random.integer(4) : undefined,
      length: sequence === hugeAt && !isEvent ? shape.hugeRecordBytes : Math.min(drawn, 900),
      sequence,
    }
  })
}

export function hashOf(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0
}
