import { expect, it } from 'vitest'
import { alignedMemory } from '../../bench/aligned-memory.ts'

it('memory has the wanted length, is filled, and begins its own buffer', () => {
  const memory = alignedMemory(100_000)
  expect(memory.byteLength).toBe(100_000)
  expect(memory.byteOffset).toBe(0)
  expect(memory.some((byte) => byte !== 0)).toBe(true)
})
