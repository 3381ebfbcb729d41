import { expect, test } from 'vitest'
import { parseWorkerId } from '../../../client/common/ids.ts'
import {
  decodeShuffleDescriptor,
  encodeShuffleDescriptor,
  type ShuffleDescriptor,
} from '../../../client/master/shuffle-descriptor.ts'
import { jobId, key } from '../../support/cluster-state.ts'

const descriptor: ShuffleDescriptor = {
  key: { jobId, ...key(3) },
  holders: [
    {
      workerId: parseWorkerId('w1'),
      host: 'h',
      port: 9710,
      firstSubpartition: 0,
      lastSubpartition: 9,
    },
  ],
  allocation: { managerEpoch: 1, jobEpoch: 2, sequence: 3 },
  bufferSizeBytes: 32_768,
  codec: 'lz4',
  subpartitionCount: 10,
  isBroadcast: true,
  totalPartitions: 4,
}

test('a descriptor comes back from its text as it was, expected bytes or not', () => {
  for (const one of [descriptor, { ...descriptor, expectedBytes: 5 }]) {
    expect(decodeShuffleDescriptor(encodeShuffleDescriptor(one))).toEqual(one)
  }
})

test('whatever is missing or of another kind is refused by name', () => {
  const whole = JSON.parse(encodeShuffleDescriptor(descriptor)) as Record<string, unknown>
  for (const field of [
    'key',
    'holders',
    'allocation',
    'bufferSizeBytes',
    'codec',
    'subpartitionCount',
    'totalPartitions',
  ]) {
    for (const value of [undefined, null, -1, [], true]) {
      const text = JSON.stringify({ ...whole, [field]: value })
      expect(() => decodeShuffleDescriptor(text), `${field} ${String(value)}`).toThrow(field)
    }
  }
  expect(() => decodeShuffleDescriptor('{')).toThrow(/must be JSON/)
  expect(() => decodeShuffleDescriptor('[]')).toThrow(/an object/)
  const badId = { ...whole, key: { ...descriptor.key, attemptId: 'a b' } }
  expect(() => decodeShuffleDescriptor(JSON.stringify(badId))).toThrow(/attempt id/)
})

test('a worker epoch is no part of it', () => {
  expect(encodeShuffleDescriptor(descriptor)).not.toMatch(/workerEpoch/)
})
