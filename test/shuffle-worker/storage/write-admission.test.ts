import { describe, expect, it } from 'vitest'
import type { OpenWriteRequest } from '../../../shuffle-worker/storage/storage-types.ts'
import {
  checkWriteRequest,
  refusalOf,
  type KnownOfKey,
} from '../../../shuffle-worker/storage/write-admission.ts'
import { allocationOf, bufferSizeBytes, keyOf } from './support/store-fixture.ts'

const request: OpenWriteRequest = {
  key: keyOf(1),
  allocation: allocationOf(5),
  subpartitionCount: 3,
  bufferSizeBytes,
  codec: 'lz4',
}
const nothing: KnownOfKey = { entry: undefined, fate: undefined, highestAllocation: undefined }
const gone = { key: keyOf(1), byteCount: 0, directoryIndex: 0 }

describe('the admission of a write', () => {
  it.each([
    [{ subpartitionCount: 0 }, /subpartitions/],
    [{ subpartitionCount: 2 ** 21 }, /subpartitions/],
    [{ bufferSizeBytes: 2 * bufferSizeBytes }, /buffers/],
    [{ codec: 'a b' }, /codec/],
    [{ codec: 'x'.repeat(65) }, /codec/],
  ])('refuses %o by what it says', (wrong, message) => {
    expect(() => {
      checkWriteRequest({ ...request, ...wrong }, bufferSizeBytes)
    }).toThrow(message)
  })

  it('admits what nothing is known of, or the same allocation again after an abort', () => {
    expect(refusalOf(request, nothing)).toBeUndefined()
    expect(refusalOf(request, { ...nothing, highestAllocation: allocationOf(5) })).toBeUndefined()
  })

  it.each([
    [{ highestAllocation: allocationOf(6) }, 'STALE_ALLOCATION'],
    [{ fate: { state: 'released' } }, 'STALE_ALLOCATION'],
    [{ fate: { state: 'lost', code: 'DATA_CORRUPT' } }, 'WRITER_CONFLICT'],
    [{ entry: { state: 'releasing', allocation: allocationOf(1), ...gone } }, 'STALE_ALLOCATION'],
    [{ entry: { state: 'released', allocation: allocationOf(1), ...gone } }, 'STALE_ALLOCATION'],
    [{ entry: { state: 'released', allocation: allocationOf(9), ...gone } }, 'STALE_ALLOCATION'],
  ] as const)('refuses by name when %o is known', (known, code) => {
    expect(refusalOf(request, { ...nothing, ...known })?.code).toBe(code)
  })
})
