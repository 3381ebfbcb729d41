import { describe, expect, it } from 'vitest'
import {
  checkMemorySizes,
  defaultFloors,
  defaultMemoryBytes,
  sumOfFloors,
} from '../../../shuffle-worker/memory/memory-floors.ts'

const mebibyte = 1024 * 1024
const bufferSizeBytes = 32 * 1024

describe('the floors of the memory', () => {
  it('are 24, 24, 8 and 8 MiB of the default pool and scale with another', () => {
    expect(defaultFloors(defaultMemoryBytes)).toEqual({
      write: 24 * mebibyte,
      read: 24 * mebibyte,
      index: 8 * mebibyte,
      control: 8 * mebibyte,
    })
    expect(defaultFloors(32 * mebibyte).read).toBe(12 * mebibyte)
    expect(sumOfFloors(defaultFloors(1_000_003))).toBeLessThanOrEqual(1_000_003)
  })

  it('are refused by name when they pass the pool', () => {
    const floors = { ...defaultFloors(64 * mebibyte), read: 32 * mebibyte }
    expect(() => {
      checkMemorySizes({ totalBytes: 64 * mebibyte, bufferSizeBytes, floors })
    }).toThrow(/floors add up to 75497472 bytes, more than the pool of 67108864/)
  })

  it('are refused when a region could not get its least grant', () => {
    const totalBytes = 16 * bufferSizeBytes
    expect(() => {
      checkMemorySizes({ totalBytes, bufferSizeBytes, floors: defaultFloors(totalBytes) })
    }).toThrow(/the floor of write memory is 196608 bytes and must be at least 262144/)
  })

  it.each([1000, 2048, 48 * 1024, 2 * mebibyte])('refuse a buffer of %i bytes', (size) => {
    expect(() => {
      checkMemorySizes({
        totalBytes: 64 * mebibyte,
        bufferSizeBytes: size,
        floors: defaultFloors(64 * mebibyte),
      })
    }).toThrow(/power of two/)
  })
})
