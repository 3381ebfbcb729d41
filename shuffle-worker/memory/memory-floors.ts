// How the worker's memory is divided: the floors of the purposes and what makes a division
// consistent. The ledger enforces it.

import { ShuffleError } from '../../client/common/errors.ts'
import { slabSizeBytes } from './slab-pool.ts'

export type MemoryPurpose = 'write' | 'read' | 'index' | 'control'

export const memoryPurposes: readonly MemoryPurpose[] = ['write', 'read', 'index', 'control']

export type MemoryFloors = Readonly<Record<MemoryPurpose, number>>

export const defaultMemoryBytes = 64 * 1024 * 1024

/** Parts of 64: two equal halves of the data path, and room for index rows and channel state. */
const floorShares: MemoryFloors = { write: 24, read: 24, index: 8, control: 8 }

/** A region's least grant (8 buffers) must fit, and a few credits of reads. */
const dataFloorBuffersMin = 8
/** One index row of a few thousand subpartitions. */
const countedFloorBytesMin = 64 * 1024

export function defaultFloors(totalBytes: number): MemoryFloors {
  const part = (purpose: MemoryPurpose) => Math.floor((totalBytes * floorShares[purpose]) / 64)
  return {
    write: part('write'),
    read: part('read'),
    index: part('index'),
    control: part('control'),
  }
}

export function sumOfFloors(floors: MemoryFloors): number {
  return floors.write + floors.read + floors.index + floors.control
}

/** INVALID_ARGUMENT, saying what doesn't fit and what to change. */
export function checkMemorySizes(sizes: {
  readonly totalBytes: number
  readonly bufferSizeBytes: number
  readonly floors: MemoryFloors
}): void {
  const { totalBytes, bufferSizeBytes, floors } = sizes
  const isPowerOfTwo = Number.isInteger(Math.log2(bufferSizeBytes))
  if (!isPowerOfTwo || bufferSizeBytes < 4096 || bufferSizeBytes > slabSizeBytes) {
    throw invalid(
      `the buffer size must be a power of two from 4 KiB to 1 MiB, got ${String(bufferSizeBytes)}`,
    )
  }
  const sum = sumOfFloors(floors)
  if (sum > totalBytes) {
    throw invalid(
      `the floors add up to ${String(sum)} bytes, more than the pool of ${String(totalBytes)}; lower a floor or raise the pool`,
    )
  }
  for (const purpose of memoryPurposes) {
    const isData = purpose === 'write' || purpose === 'read'
    const least = isData ? dataFloorBuffersMin * bufferSizeBytes : countedFloorBytesMin
    if (floors[purpose] >= least) continue
    throw invalid(
      `the floor of ${purpose} memory is ${String(floors[purpose])} bytes and must be at least ${String(least)}; raise the pool or lower the buffer size`,
    )
  }
}

function invalid(message: string): ShuffleError {
  return new ShuffleError('INVALID_ARGUMENT', message)
}
