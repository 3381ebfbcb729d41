// Whether a write may be opened, before any of it exists: limits of the request itself, and what is
// known of its key.

import { ShuffleError } from '../../client/common/errors.ts'
import { compareAllocations, type AllocationId } from '../../client/common/ids.ts'
import type { KeyFate } from './key-memory.ts'
import { codecLengthMax, subpartitionCountMax } from './partition-format.ts'
import { allocationOf, type RegistryEntry } from './partition-registry.ts'
import type { OpenWriteRequest } from './storage-types.ts'

/** LIMIT_EXCEEDED or INVALID_ARGUMENT. */
export function checkWriteRequest(request: OpenWriteRequest, bufferSizeBytes: number): void {
  const { subpartitionCount, codec } = request
  const fields = { ...request.key }
  if (subpartitionCount < 1 || subpartitionCount > subpartitionCountMax) {
    throw new ShuffleError(
      'LIMIT_EXCEEDED',
      `a partition has from 1 to ${String(subpartitionCountMax)} subpartitions, not ${String(subpartitionCount)}`,
      { fields },
    )
  }
  if (request.bufferSizeBytes > bufferSizeBytes) {
    throw new ShuffleError(
      'LIMIT_EXCEEDED',
      `the buffers of the data set have ${String(request.bufferSizeBytes)} bytes, those of this worker ${String(bufferSizeBytes)}`,
      { fields },
    )
  }
  if (!/^[\x21-\x7e]*$/.test(codec) || codec.length > codecLengthMax) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `a codec's name has at most ${String(codecLengthMax)} printable characters`,
      { fields },
    )
  }
}

export interface KnownOfKey {
  readonly entry: RegistryEntry | undefined
  readonly fate: KeyFate | undefined
  readonly highestAllocation: AllocationId | undefined
}

/**
 * STALE_ALLOCATION or WRITER_CONFLICT, or undefined when the write may begin. BUSY while what an
 * earlier writer left is deleted: a client whose connection broke while it opened comes back at once.
 */
export function refusalOf(request: OpenWriteRequest, known: KnownOfKey): ShuffleError | undefined {
  const { entry, fate } = known
  const state = entry?.state ?? fate?.state
  const seen = entry === undefined ? known.highestAllocation : allocationOf(entry)
  if (seen !== undefined && compareAllocations(request.allocation, seen) < 0) {
    return refusal(request, 'STALE_ALLOCATION', 'a newer allocation of the key is known here')
  }
  switch (state) {
    case undefined:
      return undefined
    case 'releasing':
    case 'released':
      return refusal(request, 'STALE_ALLOCATION', 'the key was told to release')
    case 'writing':
      return hasEnded(entry)
        ? new ShuffleError('BUSY', 'what an earlier writer of the key left is being deleted', {
            fields: { ...request.key },
          })
        : refusal(request, 'WRITER_CONFLICT', 'the key has a writer here')
    case 'committed':
      return refusal(request, 'WRITER_CONFLICT', 'the key is committed here')
    case 'lost':
      return refusal(request, 'WRITER_CONFLICT', 'the key was committed here and lost')
  }
}

function hasEnded(entry: RegistryEntry | undefined): boolean {
  return entry?.state === 'writing' && entry.write.failure !== undefined
}

function refusal(
  request: OpenWriteRequest,
  code: 'STALE_ALLOCATION' | 'WRITER_CONFLICT',
  what: string,
): ShuffleError {
  return new ShuffleError(code, `the write is refused: ${what}; the attempt must fail`, {
    fields: { ...request.key, ...request.allocation },
  })
}
