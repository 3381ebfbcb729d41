import { compressSync } from 'lz4-napi'
import { describe, expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { BufferUnpacker } from '../../../client/read/buffer-unpacker.ts'
import { InputPartition } from '../../../client/read/input-partition.ts'
import type { ReceivedEntry } from '../../../client/read/received-entry.ts'
import { SharedBody } from '../../../client/read/shared-body.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'

async function setUp(options: { aheadBytesMax?: number } = {}) {
  const bench = new ClientBench()
  const descriptor = descriptorOf(await bench.startWorker('w1'))
  let bodiesOut = 0
  let readyCount = 0
  const failed: string[] = []
  const unpacker = new BufferUnpacker({
    compute: bench.process.compute,
    parallelism: 3,
    aheadBytesMax: options.aheadBytesMax ?? 10_000,
    onReady: () => {
      readyCount += 1
    },
    onFailed: (partition, error) => {
      failed.push(`${String(partition.inputIndex)} ${error.code}`)
      partition.fail(error)
      unpacker.discardStale()
    },
  })
  const partitionOf = (inputIndex: number) =>
    new InputPartition(
      { inputIndex, descriptor, firstSubpartition: 0, lastSubpartition: 3, isPending: false },
      { recordBytesMax: 5000 },
    )
  const push = (
    partition: InputPartition,
    payload: Uint8Array,
    more: Partial<ReceivedEntry> = {},
  ) => {
    bodiesOut += 1
    const body = new SharedBody({
      bytes: payload,
      recycle: () => {
        bodiesOut -= 1
      },
    })
    unpacker.push({
      partition,
      generation: partition.generation,
      regionIndex: 0,
      subpartition: 0,
      type: 0,
      isCompressed: false,
      isLastOfRun: true,
      payload,
      body,
      ...more,
    })
  }
  const next = async () => {
    for (let turn = 0; turn < 50; turn += 1) {
      const batch = unpacker.poll()
      if (batch !== undefined) return batch
      await bench.world.clock.advance(1)
    }
    return undefined
  }
  return {
    bench,
    unpacker,
    partitionOf,
    push,
    next,
    failed,
    bodiesOut: () => bodiesOut,
    readyCount: () => readyCount,
  }
}

function framed(text: string): Buffer {
  const bytes = Buffer.alloc(4 + text.length)
  bytes.writeUInt32BE(text.length)
  bytes.write(text, 4)
  return bytes
}

function compressed(bytes: Buffer, claimed = bytes.length): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(claimed)
  return Buffer.concat([size, compressSync(bytes).subarray(4)])
}

function textOf(batch: Awaited<ReturnType<Awaited<ReturnType<typeof setUp>>['next']>>): string {
  if (batch === undefined) return 'nothing'
  const text =
    batch.kind === 'event'
      ? `event ${String(batch.code)}`
      : [...batch].map((record) => Buffer.from(record).toString()).join('|')
  batch.recycle()
  return text
}

describe('the buffer unpacker', () => {
  test('hands out raw and compressed entries in the order in which they came', async () => {
    const { partitionOf, push, next, bodiesOut, unpacker } = await setUp()
    const partition = partitionOf(0)
    const expected: string[] = []
    for (let index = 0; index < 40; index += 1) {
      const text = `${String(index)} `.repeat(40)
      expected.push(text)
      if (index % 3 === 0) push(partition, framed(text))
      else push(partition, compressed(framed(text)), { isCompressed: true })
    }
    const found: string[] = []
    while (found.length < 40) found.push(textOf(await next()))
    expect(found).toEqual(expected)
    expect([bodiesOut(), unpacker.isEmpty, unpacker.workingCount]).toEqual([0, true, 0])
  })

  test('uncompresses no further ahead than its bound', async () => {
    const { bench, partitionOf, push, next, unpacker, bodiesOut } = await setUp({
      aheadBytesMax: 1000,
    })
    const partition = partitionOf(0)
    const text = 'a'.repeat(600)
    for (let index = 0; index < 10; index += 1) {
      push(partition, compressed(framed(text)), { isCompressed: true })
    }
    await bench.world.clock.advance(100)
    // Two were uncompressed and gave their bodies back; the others wait.
    expect(bodiesOut()).toBe(8)
    expect(unpacker.workingCount).toBe(0)
    for (let index = 0; index < 10; index += 1) expect(textOf(await next())).toBe(text)
    expect(bodiesOut()).toBe(0)
  })

  test('says so when a batch that was held makes room for the next entry, raw or compressed', async () => {
    for (const isCompressed of [false, true]) {
      const { bench, partitionOf, push, next, unpacker, readyCount } = await setUp({
        aheadBytesMax: 500,
      })
      const partition = partitionOf(0)
      push(partition, compressed(framed('a'.repeat(600))), { isCompressed: true })
      const held = await next()
      const bytes = framed('b'.repeat(600))
      push(partition, isCompressed ? compressed(bytes) : bytes, { isCompressed })
      await bench.world.clock.advance(100)
      expect(unpacker.poll()).toBeUndefined()
      const before = readyCount()
      held?.recycle()
      await bench.world.clock.advance(100)
      expect(readyCount()).toBeGreaterThan(before)
      expect(textOf(unpacker.poll())).toBe('b'.repeat(600))
    }
  })

  test('a record over several entries comes with the one that completes it', async () => {
    const { partitionOf, push, next, bodiesOut } = await setUp()
    const partition = partitionOf(0)
    const bytes = framed('x'.repeat(2000))
    push(partition, bytes.subarray(0, 700), { isLastOfRun: false })
    push(partition, bytes.subarray(700, 1400), { isLastOfRun: false })
    push(partition, Buffer.concat([bytes.subarray(1400), framed('next')]))
    expect(textOf(await next())).toBe(`${'x'.repeat(2000)}|next`)
    expect(bodiesOut()).toBe(0)
  })

  test('events come in their place, with bytes of their own', async () => {
    const { partitionOf, push, next } = await setUp()
    const partition = partitionOf(0)
    const bytes = Buffer.from('e')
    push(partition, framed('a'), { isLastOfRun: false })
    push(partition, bytes, { type: 2 })
    expect(textOf(await next())).toBe('a')
    const event = await next()
    bytes.fill(0)
    expect(event).toMatchObject({ kind: 'event', code: 2, bytes: Uint8Array.of(101) })
  })

  test('what cannot be unpacked fails its partition and no other', async () => {
    const bytes = framed('hello '.repeat(50))
    const cases: readonly [string, Buffer, Partial<ReceivedEntry>][] = [
      ['a run that ends in a record', Buffer.of(0, 0, 0, 9, 1), {}],
      ['an event within a record', Buffer.of(0, 0, 0, 9, 1), { type: 1, isLastOfRun: false }],
      ['an unknown type', Buffer.of(1), { type: 77 }],
      ['a block without a size', Buffer.of(0, 0), { isCompressed: true }],
      ['an impossible size', compressed(bytes, 5_000_000), { isCompressed: true }],
      ['another size', compressed(bytes, bytes.length - 1), { isCompressed: true }],
      ['a broken block', Buffer.from([0, 0, 1, 0, 255, 255, 255]), { isCompressed: true }],
    ]
    for (const [name, payload, more] of cases) {
      const { partitionOf, push, next, failed, bodiesOut } = await setUp()
      const bad = partitionOf(0)
      const good = partitionOf(1)
      if (name.startsWith('an event')) bad.records.add(Buffer.of(0, 0, 0, 9, 1))
      push(bad, payload, more)
      push(bad, framed('never'))
      push(good, framed('other'))
      expect(textOf(await next()), name).toBe('other')
      expect(failed, name).toEqual(['0 DATA_CORRUPT'])
      expect(bodiesOut(), name).toBe(0)
    }
  })

  test('drops what is stale, ready or in work, and gives it back', async () => {
    const { bench, partitionOf, push, next, unpacker, bodiesOut } = await setUp()
    const partition = partitionOf(0)
    push(partition, framed('raw'))
    push(partition, compressed(framed('z'.repeat(500))), { isCompressed: true })
    partition.fail(new ShuffleError('DISK_FAILED', 'gone'))
    unpacker.discardStale()
    expect(await next()).toBeUndefined()
    await bench.world.clock.advance(100)
    expect(bodiesOut()).toBe(0)
    expect(unpacker.isEmpty).toBe(true)
  })

  test('closed it gives everything back, what other threads read when they are done', async () => {
    const { bench, partitionOf, push, unpacker, bodiesOut, readyCount } = await setUp()
    const partition = partitionOf(0)
    for (let index = 0; index < 6; index += 1) {
      push(partition, compressed(framed('z'.repeat(500))), { isCompressed: true })
    }
    unpacker.close()
    expect(bodiesOut()).toBe(3)
    await bench.world.clock.advance(100)
    expect(bodiesOut()).toBe(0)
    push(partition, framed('late'))
    expect([bodiesOut(), readyCount()]).toEqual([0, 0])
    expect(unpacker.poll()).toBeUndefined()
  })
})
