// The numbers of a ResultPartition, and how its memory is divided.

import { ShuffleError } from '../common/errors.ts'
import type { ShuffleDescriptor, ShuffleHolder } from '../master/shuffle-descriptor.ts'

export interface PartitionSettings {
  readonly recordBytesMax: number
  readonly writeOpenTimeoutMs: number
  readonly regionTimeoutMs: number
  readonly commitTimeoutMs: number
  readonly retryDelayMinMs: number
  readonly retryDelayMaxMs: number
  readonly computeParallelism: number
  readonly isCompressionEnabled: boolean
}

/** Fewer leave no room to sort beside what is under way. */
export const partitionBuffersMin = 8
const transportBuffersMin = 4
const transportBuffersMax = 64

/** The worker that will hold it; refuses what this client cannot write. */
export function checkDescriptor(descriptor: ShuffleDescriptor): ShuffleHolder {
  const [holder] = descriptor.holders
  if (holder === undefined) {
    throw new ShuffleError('INVALID_ARGUMENT', 'the descriptor names no worker', {
      fields: { ...descriptor.key },
    })
  }
  if (descriptor.codec !== 'lz4' && descriptor.codec !== 'none') {
    throw new ShuffleError(
      'UNSUPPORTED_CODEC',
      `this client writes lz4 or none, not ${descriptor.codec}`,
      { fields: { ...descriptor.key, codec: descriptor.codec } },
    )
  }
  return holder
}

/** A quarter of the memory carries what is under way, the rest sorts. */
export function divideMemory(
  descriptor: ShuffleDescriptor,
  memoryBytes: number,
  settings: PartitionSettings,
): {
  readonly sortBuffers: number
  /** Pieces that are compressed at a time, a buffer each. */
  readonly parallelism: number
  /** Buffers to send with. */
  readonly bodyBuffers: number
} {
  const bufferCount = Math.floor(memoryBytes / descriptor.bufferSizeBytes)
  if (bufferCount < partitionBuffersMin) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `a result partition needs ${String(partitionBuffersMin * descriptor.bufferSizeBytes)} bytes of memory, ${String(partitionBuffersMin)} buffers; it was given ${String(memoryBytes)}`,
      { fields: { ...descriptor.key } },
    )
  }
  const transport = Math.min(
    transportBuffersMax,
    Math.max(transportBuffersMin, Math.floor(bufferCount / 4)),
  )
  const parallelism = Math.max(1, Math.min(settings.computeParallelism, transport - 2))
  return {
    sortBuffers: bufferCount - transport,
    parallelism,
    bodyBuffers: transport - parallelism,
  }
}
