// What every Compute promises, as tests: run over the real one and over the virtual one.

import { expect, test } from 'vitest'
import type { Compute } from '../../client/common/compute.ts'
import { isShuffleError } from '../../client/common/errors.ts'
import { patternBytes } from './connection-probe.ts'

export interface ComputeUnderTest {
  readonly compute: Compute
  drive<T>(promise: Promise<T>): Promise<T>
}

/** "aaaaaaaaaa…" of 100 bytes as LZ4 writes it: a literal, a match far longer, five last literals. */
const knownBlock = Buffer.from('1f6101004b506161616161', 'hex')

export function describeCompute(make: () => ComputeUnderTest): void {
  async function expectCorrupt(block: Uint8Array, sizeBytes: number): Promise<void> {
    const { compute, drive } = make()
    const error: unknown = await drive(compute.uncompress(block, sizeBytes)).catch(
      (reason: unknown) => reason,
    )
    expect(isShuffleError(error, 'DATA_CORRUPT')).toBe(true)
  }

  test.each([0, 1, 12, 1000, 32_768, 300_000])('%i bytes come back as they were', async (size) => {
    const { compute, drive } = make()
    for (const bytes of [Buffer.alloc(size, 'abcabd'), patternBytes(size, 4)]) {
      const block = await drive(compute.compress(bytes))
      const back = await drive(compute.uncompress(block, size))
      expect(Buffer.from(back).equals(bytes)).toBe(true)
    }
  })

  test('repetition gets smaller and noise hardly larger', async () => {
    const { compute, drive } = make()
    const same = await drive(compute.compress(Buffer.alloc(10_000, 'x')))
    expect(same.byteLength).toBeLessThan(200)
    const noise = await drive(compute.compress(patternBytes(10_000, 5)))
    expect(noise.byteLength).toBeLessThan(10_100)
  })

  test('a block is raw LZ4, with no size before it', async () => {
    const { compute, drive } = make()
    const bytes = await drive(compute.uncompress(knownBlock, 100))
    expect(Buffer.from(bytes).toString()).toBe('a'.repeat(100))
  })

  test('another size than the true one is corrupt', async () => {
    const { compute, drive } = make()
    const block = await drive(compute.compress(Buffer.alloc(1000, 'ab')))
    await expectCorrupt(block, 999)
    await expectCorrupt(block, 1001)
    await expectCorrupt(block, 0)
  })

  test('an impossible size is refused before memory is taken for it', async () => {
    await expectCorrupt(knownBlock, 2 ** 32)
    await expectCorrupt(knownBlock, 2 ** 31)
    await expectCorrupt(new Uint8Array(0), 1)
  })

  test('a block cut off anywhere, or of noise, is corrupt', async () => {
    const { compute, drive } = make()
    const block = await drive(compute.compress(patternBytes(300, 6)))
    for (let length = 0; length < block.byteLength; length += 1) {
      await expectCorrupt(block.subarray(0, length), 300)
    }
    await expectCorrupt(Buffer.alloc(50, 0xff), 5000)
  })

  test('many at once are answered each with its own', async () => {
    const { compute, drive } = make()
    const inputs = Array.from({ length: 64 }, (_, index) => Buffer.alloc(5000, String(index)))
    const blocks = await drive(Promise.all(inputs.map((bytes) => compute.compress(bytes))))
    const outputs = await drive(Promise.all(blocks.map((block) => compute.uncompress(block, 5000))))
    expect(outputs.map((bytes) => Buffer.from(bytes).equals(inputs.shift() ?? bytes))).toEqual(
      outputs.map(() => true),
    )
  })
}
