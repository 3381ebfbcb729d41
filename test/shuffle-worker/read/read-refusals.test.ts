import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { asReadError, refusalOf } from '../../../shuffle-worker/read/read-refusals.ts'
import { bufferSizeBytes, keyOf } from './support/memory-partition.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

const entry = entryOf(0, 0, [0, 1])
const pending = entryOf(0, 0, [0, 1], { isPending: true })

describe('refusalOf', () => {
  it('tells not yet, never, released and lost apart', () => {
    const codeOf = (...arguments_: Parameters<typeof refusalOf>) => refusalOf(...arguments_)?.code
    expect(codeOf(entry, { state: 'writing' }, bufferSizeBytes)).toBe('PARTITION_NOT_READY')
    expect(codeOf(pending, { state: 'unknown' }, bufferSizeBytes)).toBe('PARTITION_NOT_READY')
    expect(codeOf(entry, { state: 'unknown' }, bufferSizeBytes)).toBe('PARTITION_NOT_FOUND')
    expect(codeOf(pending, { state: 'released' }, bufferSizeBytes)).toBe('PARTITION_RELEASED')
    const lost = { state: 'lost', code: 'DATA_CORRUPT' } as const
    expect(codeOf(pending, lost, bufferSizeBytes)).toBe('DATA_CORRUPT')
  })

  it('lets a committed partition be read in any range of it, in buffers of its size', () => {
    const found = { state: 'committed', partition: new ReadBench().add(0, 2, []) } as const
    expect(refusalOf(entry, found, bufferSizeBytes)).toBeUndefined()
    expect(refusalOf(entryOf(0, 0, [0, 2]), found, bufferSizeBytes)?.code).toBe('PROTOCOL')
    expect(refusalOf(entryOf(0, 0, [1, 0]), found, bufferSizeBytes)?.code).toBe('PROTOCOL')
    expect(refusalOf(entry, found, bufferSizeBytes / 2)?.code).toBe('LIMIT_EXCEEDED')
  })
})

describe('asReadError', () => {
  it('keeps an error that has a code and calls any other a failure of the disk', () => {
    const corrupt = new ShuffleError('DATA_CORRUPT', 'damaged')
    expect(asReadError(corrupt, keyOf(1))).toBe(corrupt)
    const other = asReadError(new Error('EIO'), keyOf(1))
    expect([other.code, other.fields['partitionIndex']]).toEqual(['DISK_FAILED', 1])
  })
})
