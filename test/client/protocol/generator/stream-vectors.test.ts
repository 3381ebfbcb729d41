import { describe, expect, it } from 'vitest'
import {
  refusedPartitionLists,
  refusedStreams,
  toleratedStreams,
} from '../../../../client/protocol/generator/stream-vectors.ts'

describe('stream vectors', () => {
  it('each try something else', () => {
    const all = [...refusedStreams, ...toleratedStreams]
    expect(new Set(all.map(({ about }) => about)).size).toBe(all.length)
    expect(new Set(all.map(({ phase, bytes }) => phase + bytes.toString('hex'))).size).toBe(
      all.length,
    )
  })

  it('cover every reason to refuse a handshake', () => {
    const codes = new Set(refusedStreams.map(({ code }) => code))
    expect([...codes].sort()).toEqual([
      'PROTOCOL',
      'UNAUTHENTICATED',
      'UNSUPPORTED_VERSION',
      'WORKER_CHANGED',
    ])
  })

  it('say of each list how many entries it claims', () => {
    for (const { partitionCount } of refusedPartitionLists) {
      expect(partitionCount).toBeGreaterThanOrEqual(0)
    }
  })
})
