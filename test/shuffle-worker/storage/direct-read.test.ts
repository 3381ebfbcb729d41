import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { directBlockBytes } from '../../../client/common/aligned-memory.ts'
import { DirectMemory } from '../../../shuffle-worker/storage/direct-memory.ts'
import { readThrough } from '../../../shuffle-worker/storage/direct-read.ts'
import { patternBytes } from '../../support/connection-probe.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

describe('reading a direct file at any position', () => {
  it('gives the bytes that a buffered one would, to the end of the file', async () => {
    const whole = patternBytes(200_000, 5)
    const virtual = new VirtualWorld()
    virtual.disk().put('/data/file', whole)
    const memory = new DirectMemory({ writeBytes: 4096, writesMax: 1, readsMax: 8 })
    const open = virtual.main.disk.open('/data/file', 'read', { isDirect: true })
    const file = await virtual.drive(open)
    const place = fc.record({
      position: fc.integer({ min: 0, max: 210_000 }),
      length: fc.oneof(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 0, max: 200_000 })),
    })
    await fc.assert(
      fc.asyncProperty(place, async ({ position, length }) => {
        const target = Buffer.alloc(length)
        const count = await virtual.drive(readThrough(file, memory, { target, position }))
        const expected = whole.subarray(position, position + length)
        expect(count).toBe(expected.byteLength)
        expect(target.subarray(0, count).equals(expected)).toBe(true)
      }),
      { numRuns: 200, examples: [[{ position: 3 * directBlockBytes - 1, length: 2 }]] },
    )
  })

  it('gives its piece back after a failure', async () => {
    const virtual = new VirtualWorld()
    virtual.disk().put('/data/file', Buffer.alloc(10_000))
    const memory = new DirectMemory({ writeBytes: 4096, writesMax: 1, readsMax: 1 })
    const open = virtual.main.disk.open('/data/file', 'read', { isDirect: true })
    const file = await virtual.drive(open)
    virtual.disk().inject({ operation: 'read', fault: { kind: 'error', code: 'EIO' }, times: 2 })
    const read = () =>
      virtual.drive(readThrough(file, memory, { target: Buffer.alloc(10), position: 0 }))
    await expect(read()).rejects.toMatchObject({ code: 'EIO' })
    await expect(read()).rejects.toMatchObject({ code: 'EIO' })
    expect(await read()).toBe(10)
  })
})
