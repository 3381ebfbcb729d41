import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isShuffleError } from '../../../client/common/errors.ts'
import type { ShuffleDescriptor } from '../../../client/master/shuffle-descriptor.ts'
import type { ResultPartition } from '../../../client/write/result-partition.ts'
import {
  bufferSizeBytes,
  ClientBench,
  descriptorOf,
  emitText,
  readAll,
  wholeInput,
  type Received,
} from '../support/client-bench.ts'

type Emission =
  | { readonly kind: 'record'; readonly subpartition: number; readonly bytes: Uint8Array }
  | { readonly kind: 'event'; readonly subpartition: number; readonly bytes: Uint8Array }
  | { readonly kind: 'broadcast-record'; readonly bytes: Uint8Array }
  | { readonly kind: 'broadcast-event'; readonly bytes: Uint8Array }

const lengths = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 120 }) },
  { weight: 2, arbitrary: fc.integer({ min: 900, max: 3000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 10_000, max: 30_000 }) },
)

/** Bytes that compress, or do not. */
const bytes = fc
  .tuple(lengths, fc.integer({ min: 0, max: 255 }), fc.boolean())
  .map(([length, first, isPlain]) => {
    const made = new Uint8Array(length)
    let state = first + 1
    for (let index = 0; index < length; index += 1) {
      state = isPlain ? first : (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      made[index] = state >>> 16
    }
    return made
  })

const eventBytes = bytes.map((long) => long.subarray(0, 900))

function emissions(subpartitionCount: number): fc.Arbitrary<readonly Emission[]> {
  const subpartition = fc.integer({ min: 0, max: subpartitionCount - 1 })
  return fc.array(
    fc.oneof(
      {
        weight: 12,
        arbitrary: fc.record({ kind: fc.constant('record' as const), subpartition, bytes }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('event' as const),
          subpartition,
          bytes: eventBytes,
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('broadcast-record' as const), bytes }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('broadcast-event' as const),
          bytes: eventBytes,
        }),
      },
    ),
    { maxLength: 120 },
  )
}

function emit(partition: ResultPartition, emission: Emission): Promise<void> | undefined {
  switch (emission.kind) {
    case 'record':
      return partition.emitRecord(emission.bytes, emission.subpartition)
    case 'event':
      return partition.emitEvent(3, emission.bytes, emission.subpartition)
    case 'broadcast-record':
      return partition.broadcastRecord(emission.bytes)
    case 'broadcast-event':
      return partition.broadcastEvent(4, emission.bytes)
  }
}

async function emitAll(partition: ResultPartition, all: readonly Emission[]): Promise<void> {
  for (const emission of all) {
    const wait = emit(partition, emission)
    if (wait !== undefined) await wait
  }
}

function expectedOf(all: readonly Emission[], subpartitionCount: number): Received {
  const expected: Received = new Map()
  const codes = { record: 0, 'broadcast-record': 0, event: 3, 'broadcast-event': 4 }
  for (const emission of all) {
    const text = Buffer.from(emission.bytes).toString('latin1')
    const code = codes[emission.kind]
    const line = code === 0 ? text : `event ${String(code)} ${text}`
    for (let subpartition = 0; subpartition < subpartitionCount; subpartition += 1) {
      if ('subpartition' in emission && emission.subpartition !== subpartition) continue
      const place = `0/${String(subpartition)}`
      expected.set(place, [...(expected.get(place) ?? []), line])
    }
  }
  return expected
}

/** A producer that keeps going until it has failed; the code of its failure, or 'committed'. */
async function produce(partition: ResultPartition, recordCount = 400): Promise<string> {
  try {
    for (let index = 0; index < recordCount; index += 1) {
      await emitText(partition, index % 4, `record ${String(index)} `.repeat(20))
    }
    await partition.emitRecord(new Uint8Array(40_000), 2)
    await partition.finish()
    return 'committed'
  } catch (error) {
    return isShuffleError(error) ? error.code : String(error)
  }
}

async function setUp(
  options: {
    readonly descriptor?: Partial<ShuffleDescriptor>
    readonly memoryBytes?: number
    readonly signal?: AbortSignal
    readonly seed?: number
  } = {},
) {
  const bench = new ClientBench(options.seed === undefined ? {} : { seed: options.seed })
  const worker = await bench.startWorker('w1')
  const descriptor = descriptorOf(worker, options.descriptor)
  const partition = bench.createPartition(descriptor, options)
  return { bench, worker, descriptor, partition }
}

describe('a result partition', () => {
  test('records and events of any size come back whole, each in its subpartition, in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .integer({ min: 1, max: 6 })
          .chain((count) => fc.tuple(fc.constant(count), emissions(count))),
        fc.integer({ min: 8, max: 40 }),
        fc.constantFrom('lz4', 'none'),
        fc.integer(),
        async ([subpartitionCount, all], bufferCount, codec, seed) => {
          const { bench, worker, descriptor, partition } = await setUp({
            descriptor: { subpartitionCount, codec },
            memoryBytes: bufferCount * bufferSizeBytes,
            seed,
          })
          await bench.drive(emitAll(partition, all))
          const totals = await bench.drive(partition.finish())
          expect(totals.recordCount).toBe(all.filter(({ kind }) => kind.endsWith('record')).length)
          expect(worker.partition(descriptor.key)?.recordCount).toBe(totals.recordCount)
          expect(worker.partition(descriptor.key)?.bytesBySubpartition).toEqual(
            totals.bytesBySubpartition,
          )
          const gate = bench.createGate([wholeInput(descriptor)], {
            memoryBytes: bufferCount * bufferSizeBytes,
          })
          expect(await bench.drive(readAll(gate))).toEqual(expectedOf(all, subpartitionCount))
          await bench.atRest([worker])
        },
      ),
      { numRuns: 100 },
    )
  })

  test('32,768 subpartitions work in little memory', async () => {
    const subpartitionCount = 32_768
    const { bench, worker, descriptor, partition } = await setUp({
      descriptor: { subpartitionCount },
      memoryBytes: 64 * bufferSizeBytes,
    })
    const all = Array.from({ length: 3000 }, (_, index) => ({
      kind: 'record' as const,
      subpartition: (index * 7919) % subpartitionCount,
      bytes: Buffer.from(String(index)),
    }))
    await bench.drive(
      emitAll(partition, [...all, { kind: 'broadcast-event', bytes: Buffer.of(1) }]),
    )
    const totals = await bench.drive(partition.finish())
    expect(totals.recordCount).toBe(3000)
    expect(totals.bytesBySubpartition).toHaveLength(subpartitionCount)
    const gate = bench.createGate([
      wholeInput(descriptor, { firstSubpartition: 7919, lastSubpartition: 7919 }),
    ])
    expect(await bench.drive(readAll(gate))).toEqual(new Map([['0/7919', ['1', 'event 4 \x01']]]))
    await bench.atRest([worker])
  })

  test.each(['lz4', 'none'])(
    'bodies that a slow socket holds take nothing of what sorting and %s count on',
    async (codec) => {
      const { bench, worker, descriptor, partition } = await setUp({
        descriptor: { codec },
        memoryBytes: 8 * bufferSizeBytes,
      })
      bench.world.network.configure({ windowBytes: 1024, bytesPerMs: 10 })
      const records = [50_000, 10, 3000, 2000, 20_000, 100, 900].map((length, subpartition) => ({
        kind: 'record' as const,
        subpartition: subpartition % 4,
        bytes: bench.world.random.bytes(length),
      }))
      await bench.drive(emitAll(partition, records))
      await bench.drive(partition.finish())
      const gate = bench.createGate([wholeInput(descriptor)])
      expect(await bench.drive(readAll(gate))).toEqual(expectedOf(records, 4))
      await bench.atRest([worker])
    },
  )

  test('returns no promise while there is room', async () => {
    const { bench, worker, partition } = await setUp()
    expect(partition.emitRecord(Buffer.from('a'), 0)).toBeUndefined()
    expect(partition.emitRecord(Buffer.from('b'), 3)).toBeUndefined()
    await bench.drive(partition.finish())
    await bench.atRest([worker])
  })

  test('asks the worker for nothing before its first region', async () => {
    const { bench, worker, partition } = await setUp()
    await bench.drive(
      emitAll(partition, [{ kind: 'record', subpartition: 0, bytes: Buffer.of(1) }]),
    )
    await bench.world.clock.advance(60_000)
    expect(worker.dialCount).toBe(0)
    await bench.drive(partition.finish())
    expect(worker.log.slice(0, 2)).toEqual(['OpenWrite 1', 'RegionStart 1'])
    await bench.atRest([worker])
  })

  test('one region fills while the one before leaves', async () => {
    const { bench, worker, partition } = await setUp({ descriptor: { codec: 'none' } })
    worker.faults.withholdsCredit = true
    let wait: Promise<void> | undefined
    while (wait === undefined) wait = partition.emitRecord(Buffer.alloc(500), 0)
    await bench.world.clock.runUntil(() => worker.log.includes('RegionStart 1'))
    const [connection] = worker.connections
    worker.faults.withholdsCredit = false
    connection?.writes.get(1)?.grant(6)
    worker.faults.withholdsCredit = true
    await bench.drive(wait)
    expect(worker.log).not.toContain('RegionFinish 1')
    worker.faults.withholdsCredit = false
    connection?.writes.get(1)?.grant(1)
    expect((await bench.drive(partition.finish())).regionCount).toBe(2)
    await bench.atRest([worker])
  })

  test('nothing emitted makes an empty partition that is committed', async () => {
    const { bench, worker, descriptor, partition } = await setUp()
    expect(await bench.drive(partition.finish())).toMatchObject({
      recordCount: 0,
      regionCount: 0,
      entryCount: 0,
      storedBytes: 0,
      isDurable: false,
    })
    expect(worker.partition(descriptor.key)?.regions).toEqual([])
    await bench.atRest([worker])
  })

  test('compresses what gets smaller and keeps the rest as it is', async () => {
    const { bench, worker, partition } = await setUp({
      descriptor: { bufferSizeBytes: 8192 },
      memoryBytes: 16 * 8192,
    })
    await bench.drive(
      emitAll(partition, [{ kind: 'record', subpartition: 0, bytes: new Uint8Array(50_000) }]),
    )
    const totals = await bench.drive(partition.finish())
    expect(totals.uncompressedBytes).toBe(50_004)
    expect(totals.storedBytes).toBeLessThan(5000)
    expect(totals.bytesBySubpartition[0]).toBe(50_004)
    await bench.atRest([worker])
  })

  test('aborted at any instant it rejects and gives everything back', async () => {
    for (let events = 0; events < 700; events += 11) {
      const { bench, worker, descriptor, partition } = await setUp()
      const producing = produce(partition)
      await afterEvents(bench, events)
      partition.abort(new Error('the task is cancelled'))
      const outcome = await bench.drive(producing)
      expect(['CANCELLED', 'committed']).toContain(outcome)
      partition.abort()
      await bench.atRest([worker])
      if (outcome === 'committed') expect(worker.partition(descriptor.key)).toBeDefined()
      expect(bench.closedCount).toBe(1)
    }
  })

  test('a cut at any byte of an open write is WRITE_INTERRUPTED, and never resumed', async () => {
    for (let cutAt = 300; cutAt < 60_000; cutAt = Math.floor(cutAt * 1.15)) {
      const { bench, worker, descriptor, partition } = await setUp()
      const producing = produce(partition)
      await bench.world.clock.runUntil(() => worker.log.includes('RegionStart 1'))
      const [link] = bench.world.network.linksOf('w1')
      link?.cutAfter('client', cutAt)
      const outcome = await bench.drive(producing)
      expect(['WRITE_INTERRUPTED', 'committed']).toContain(outcome)
      if (outcome !== 'committed') {
        expect(worker.log.filter((line) => line.startsWith('OpenWrite'))).toHaveLength(1)
        expect(worker.partition(descriptor.key)).toBeUndefined()
      }
      await bench.atRest([worker])
    }
  })

  test('after a failure every call rejects with it', async () => {
    const { bench, worker, partition } = await setUp()
    partition.abort(new Error('enough'))
    await expect(partition.emitRecord(Buffer.of(1), 0)).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(partition.broadcastEvent(1, Buffer.of(1))).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    await expect(partition.finish()).rejects.toMatchObject({ code: 'CANCELLED' })
    await bench.atRest([worker])
  })

  test('a signal aborts it, also one that was aborted before', async () => {
    const abort = new AbortController()
    const { bench, worker, partition } = await setUp({ signal: abort.signal })
    const producing = produce(partition)
    await bench.world.clock.advance(1)
    abort.abort(new Error('cancel'))
    expect(await bench.drive(producing)).toBe('CANCELLED')
    const late = bench.createPartition(descriptorOf(worker), { signal: abort.signal })
    expect(late.isClosed).toBe(true)
    expect(await bench.drive(produce(late))).toBe('CANCELLED')
    await bench.atRest([worker])
  })

  test('refuses a subpartition, a code, an event or a record that cannot be', async () => {
    const bench = new ClientBench({ settings: { recordBytesMax: 1000 } })
    const worker = await bench.startWorker('w1')
    const partition = bench.createPartition(descriptorOf(worker))
    const invalid = { code: 'INVALID_ARGUMENT' }
    await expect(partition.emitRecord(Buffer.of(1), 4)).rejects.toMatchObject(invalid)
    await expect(partition.emitRecord(Buffer.of(1), -1)).rejects.toMatchObject(invalid)
    await expect(partition.emitRecord(Buffer.of(1), 1.5)).rejects.toMatchObject(invalid)
    await expect(partition.emitRecord(Buffer.of(1), NaN)).rejects.toMatchObject(invalid)
    await expect(partition.emitEvent(0, Buffer.of(1), 0)).rejects.toMatchObject(invalid)
    await expect(partition.emitEvent(99, Buffer.of(1), 0)).rejects.toMatchObject(invalid)
    await expect(partition.emitEvent(1, Buffer.alloc(961), 0)).rejects.toMatchObject(invalid)
    await expect(partition.emitRecord(Buffer.alloc(1001), 0)).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      fields: { recordBytes: 1001 },
    })
    await bench.drive(partition.finish())
    await bench.atRest([worker])
  })

  test('many events leave in regions of their own before they fill the heap', async () => {
    const { bench, worker, descriptor, partition } = await setUp()
    const all = Array.from({ length: 200 }, (_, index) => ({
      kind: 'event' as const,
      subpartition: index % 4,
      bytes: Buffer.from(String(index)),
    }))
    await bench.drive(emitAll(partition, all))
    const totals = await bench.drive(partition.finish())
    expect(totals.regionCount).toBeGreaterThan(3)
    const gate = bench.createGate([wholeInput(descriptor)])
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(all, 4))
    await bench.atRest([worker])
  })

  test('tells where its time went', async () => {
    const { bench, worker, partition } = await setUp()
    worker.faults.withholdsCredit = true
    const producing = produce(partition)
    await bench.world.clock.advance(30_000)
    expect(partition.timeInState().credit).toBeGreaterThan(29_000)
    partition.abort()
    await bench.drive(producing)
    await bench.atRest([worker])
  })
})

async function afterEvents(bench: ClientBench, count: number): Promise<void> {
  let left = count
  await bench.world.clock.runUntil(() => left-- <= 0 || bench.world.clock.eventCount === 0)
}
