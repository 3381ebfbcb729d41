import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { directBlockBytes } from '../../../client/common/aligned-memory.ts'
import { DirectMemory } from '../../../shuffle-worker/storage/direct-memory.ts'
import {
  BufferedAppender,
  DirectAppender,
  lengthOf,
  type FileAppender,
} from '../../../shuffle-worker/storage/file-appender.ts'
import { patternBytes } from '../../support/connection-probe.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const path = '/data/file'

function newMemory(writeBytes = 4 * directBlockBytes): DirectMemory {
  return new DirectMemory({ writeBytes, writesMax: 4, readsMax: 8 })
}

async function newFile(virtual: VirtualWorld, memory: DirectMemory, isDirect = true) {
  await virtual.drive(virtual.main.disk.makeDirectory('/data'))
  const disk = newQueuedDisk(virtual.main, 1000, memory)
  return await virtual.drive(disk.open(path, 'create', { isDirect }))
}

function bytesOf(virtual: VirtualWorld): Buffer {
  return Buffer.from(virtual.disk().contentOf(path) ?? [])
}

describe('appending to a direct file', () => {
  it('gives, for parts of any length, a file with exactly their bytes', async () => {
    const lengths = fc.array(fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 6 }), {
      maxLength: 8,
    })
    await fc.assert(
      fc.asyncProperty(lengths, fc.boolean(), async (batches, isDirect) => {
        const virtual = new VirtualWorld()
        const memory = newMemory()
        const file = await newFile(virtual, memory, isDirect)
        const appender: FileAppender = isDirect
          ? new DirectAppender(memory)
          : new BufferedAppender()
        const whole = patternBytes(
          lengthOf(batches.flat().map((length) => Buffer.alloc(length))),
          1,
        )
        let at = 0
        for (const batch of batches) {
          const parts = batch.map((length) => {
            const part = Buffer.from(whole.subarray(at, at + length))
            at += length
            return part
          })
          const { written, released } = appender.append(file, parts)
          await virtual.drive(released)
          // What was let go may be used for something else at once.
          if (isDirect) for (const part of parts) part.fill(0)
          await virtual.drive(written)
        }
        await virtual.drive(appender.finish(file))
        expect(bytesOf(virtual).equals(whole)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('writes once for what fits one piece, and nothing for less than a block', async () => {
    const virtual = new VirtualWorld()
    const memory = newMemory()
    const file = await newFile(virtual, memory)
    const appender = new DirectAppender(memory)
    const before = virtual.disk().operationCount
    await virtual.drive(appender.append(file, [Buffer.alloc(1000)]).written)
    expect(virtual.disk().operationCount - before).toBe(0)
    await virtual.drive(appender.append(file, [Buffer.alloc(appender.appendBytesMax)]).written)
    expect(virtual.disk().operationCount - before).toBe(1)
    await virtual.drive(appender.finish(file))
    // The padded rest, and the cut to its length.
    expect(virtual.disk().operationCount - before).toBe(3)
    expect(bytesOf(virtual).byteLength).toBe(1000 + appender.appendBytesMax)
  })

  it('a file that ends with a block is not cut', async () => {
    const virtual = new VirtualWorld()
    const memory = newMemory()
    const file = await newFile(virtual, memory)
    const appender = new DirectAppender(memory)
    await virtual.drive(appender.append(file, [Buffer.alloc(2 * directBlockBytes)]).written)
    const before = virtual.disk().operationCount
    await virtual.drive(appender.finish(file))
    expect(virtual.disk().operationCount).toBe(before)
  })

  it('lets go of its parts and of its piece when the write fails', async () => {
    const virtual = new VirtualWorld()
    const memory = newMemory()
    const file = await newFile(virtual, memory)
    virtual.disk().inject({ operation: 'write', fault: { kind: 'error', code: 'EIO' } })
    for (let count = 0; count < 10; count += 1) {
      const appender = new DirectAppender(memory)
      const { written, released, ended } = appender.append(file, [Buffer.alloc(50_000)])
      await expect(virtual.drive(written)).rejects.toMatchObject({ code: 'DISK_FAILED' })
      await virtual.drive(Promise.all([released, ended]))
    }
    expect(memory.bytes).toBe(4 * directBlockBytes)
  })

  it('a hung write keeps its piece until it really ends, and its caller does not wait', async () => {
    const virtual = new VirtualWorld()
    const memory = newMemory()
    const file = await newFile(virtual, memory)
    virtual.disk().inject({ operation: 'write', fault: { kind: 'hang' }, times: 1 })
    const { written, ended } = new DirectAppender(memory).append(file, [Buffer.alloc(5000)])
    let hasEnded = false
    void ended.then(() => {
      hasEnded = true
    })
    await expect(virtual.drive(written)).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(hasEnded).toBe(false)
    virtual.disk().releaseHung()
    await virtual.drive(ended)
  })
})
