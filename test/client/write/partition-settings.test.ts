import { describe, expect, test } from 'vitest'
import { defaultEnvironmentOptions } from '../../../client/shuffle-environment.ts'
import { checkDescriptor, divideMemory } from '../../../client/write/partition-settings.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'

const bench = new ClientBench()
const descriptor = descriptorOf(await bench.startWorker('w1'))

describe('the memory of a result partition', () => {
  test('goes to sorting for three quarters, the rest carries what is under way', () => {
    expect(divideMemory(descriptor, 100 * 1024, defaultEnvironmentOptions)).toEqual({
      sortBuffers: 75,
      parallelism: 4,
      bodyBuffers: 21,
    })
  })

  test('always leaves two buffers to send with beside those that are compressed', () => {
    expect(divideMemory(descriptor, 8 * 1024, defaultEnvironmentOptions)).toEqual({
      sortBuffers: 4,
      parallelism: 2,
      bodyBuffers: 2,
    })
  })

  test('of less than eight buffers is refused', () => {
    expect(() => divideMemory(descriptor, 8 * 1024 - 1, defaultEnvironmentOptions)).toThrow(
      /needs 8192 bytes/,
    )
  })
})

describe('a descriptor', () => {
  test('names its worker', () => {
    expect(checkDescriptor(descriptor).host).toBe('w1')
  })

  test('without a worker or with a codec of others is refused by name', () => {
    expect(() => checkDescriptor({ ...descriptor, holders: [] })).toThrow(/no worker/)
    expect(() => checkDescriptor({ ...descriptor, codec: 'zstd' })).toThrow(/zstd/)
  })
})
