import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { InputGate } from '../../../client/read/input-gate.ts'
import { isShuffleError, ShuffleError } from '../../../client/common/errors.ts'
import { partitionKeyText } from '../../../client/common/ids.ts'
import type { ShuffleDescriptor } from '../../../client/master/shuffle-descriptor.ts'
import {
  bufferSizeBytes,
  ClientBench,
  collect,
  descriptorOf,
  emitText,
  readAll,
  wholeInput,
  type Received,
} from '../support/client-bench.ts'
import type { FakeWorker } from '../support/fake-worker.ts'

/** Text that compresses a little, of a length drawn from the index. */
function textOf(index: number): string {
  return `${String(index)} `.repeat(1 + ((index * 37) % 90))
}

async function writeSome(
  bench: ClientBench,
  worker: FakeWorker,
  partitionIndex: number,
  recordCount = 300,
): Promise<ShuffleDescriptor> {
  const descriptor = descriptorOf(worker, { partitionIndex })
  await bench.drive(
    bench.write(descriptor, async (partition) => {
      for (let index = 0; index < recordCount; index += 1) {
        await emitText(partition, index % 4, textOf(index))
      }
      await partition.broadcastEvent(2, Buffer.from('end'))
    }),
  )
  return descriptor
}

function expectedOf(partitionCount: number, recordCount = 300): Received {
  const expected: Received = new Map()
  for (let input = 0; input < partitionCount; input += 1) {
    for (let subpartition = 0; subpartition < 4; subpartition += 1) {
      const list: string[] = []
      for (let index = subpartition; index < recordCount; index += 4) list.push(textOf(index))
      expected.set(`${String(input)}/${String(subpartition)}`, [...list, 'event 2 end'])
    }
  }
  return expected
}

/** Reads on through failures; the codes in the order told, ends at the first one told twice. */
async function readFailing(gate: InputGate, received: Received = new Map()): Promise<string[]> {
  const codes: string[] = []
  const told = new Set<unknown>()
  for (;;) {
    try {
      const batch = await gate.nextBatch()
      if (batch === undefined) return codes
      collect(received, batch)
    } catch (error) {
      if (!isShuffleError(error) || told.has(error)) return codes
      told.add(error)
      codes.push(`${error.code} of ${String(error.fields['inputIndex'])}`)
    }
  }
}

describe('an input gate', () => {
  test('hands out every record of every subpartition, in the order of its emission', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptor = await writeSome(bench, worker, 0)
    const gate = bench.createGate([wholeInput(descriptor)])
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(1))
    await bench.atRest([worker])
  })

  test('reads many partitions of many workers with one channel for each worker', async () => {
    const bench = new ClientBench()
    const workers = [await bench.startWorker('w1'), await bench.startWorker('w2')]
    const descriptors: ShuffleDescriptor[] = []
    for (let index = 0; index < 10; index += 1) {
      const worker = workers[index % 2]
      if (worker !== undefined) descriptors.push(await writeSome(bench, worker, index))
    }
    const gate = bench.createGate(descriptors.map((descriptor) => wholeInput(descriptor)))
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(10))
    for (const worker of workers) {
      expect(worker.log.filter((line) => line.startsWith('OpenRead'))).toHaveLength(1)
    }
    await bench.atRest(workers)
  })

  test('opens the next channel when one finishes, with memory for one only', async () => {
    const bench = new ClientBench()
    const workers: FakeWorker[] = []
    const descriptors: ShuffleDescriptor[] = []
    for (let index = 0; index < 5; index += 1) {
      const worker = await bench.startWorker(`w${String(index)}`)
      workers.push(worker)
      descriptors.push(await writeSome(bench, worker, index))
    }
    const gate = bench.createGate(
      descriptors.map((descriptor) => wholeInput(descriptor)),
      { memoryBytes: 4 * bufferSizeBytes },
    )
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(5))
    await bench.atRest(workers)
  })

  test('without inputs it ends at once', async () => {
    const bench = new ClientBench()
    const gate = bench.createGate([])
    expect(await bench.drive(gate.nextBatch())).toBeUndefined()
    expect(await bench.drive(gate.nextBatch())).toBeUndefined()
    await bench.atRest()
  })

  test('empty partitions end at once', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptor = descriptorOf(worker)
    await bench.drive(bench.write(descriptor, () => Promise.resolve()))
    const gate = bench.createGate([wholeInput(descriptor), wholeInput(descriptor)])
    expect(await bench.drive(gate.nextBatch(), 100)).toBeUndefined()
    await bench.atRest([worker])
  })

  test('a range without any data ends at once', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptor = descriptorOf(worker)
    await bench.drive(bench.write(descriptor, (partition) => emitText(partition, 3, 'x')))
    const gate = bench.createGate([wholeInput(descriptor, { lastSubpartition: 2 })])
    expect(await bench.drive(gate.nextBatch(), 100)).toBeUndefined()
    await bench.atRest([worker])
  })

  test('broadcast records reach every subpartition of the range', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptor = descriptorOf(worker)
    const totals = await bench.drive(
      bench.write(descriptor, async (partition) => {
        await emitText(partition, 1, 'before')
        await partition.broadcastRecord(Buffer.from('all'))
        await emitText(partition, 2, 'after')
      }),
    )
    expect([...totals.bytesBySubpartition]).toEqual([7, 17, 16, 7])
    const gate = bench.createGate([wholeInput(descriptor, { firstSubpartition: 1 })])
    expect(await bench.drive(readAll(gate))).toEqual(
      new Map([
        ['0/1', ['before', 'all']],
        ['0/2', ['all', 'after']],
        ['0/3', ['all']],
      ]),
    )
    await bench.atRest([worker])
  })

  test('goes on where it stood after a cut at any byte', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    let cutAt = 1
    for (let isCut = true; isCut; cutAt += 61) {
      const { bench, worker, gate } = await setUp(partitions, descriptors)
      const reading = readAll(gate)
      const [link] = await linksOf(bench)
      link?.cutAfter('server', cutAt)
      expect(await bench.drive(reading)).toEqual(expectedOf(2, 40))
      isCut = worker.dialCount > 1
      await bench.atRest([worker])
    }
    expect(cutAt).toBeGreaterThan(3000)
  })

  test('goes on after any number of cuts, with little memory and bodies of any size', async () => {
    const { partitions, descriptors } = await prepare(5, 80)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 6000 }), { maxLength: 8 }),
        fc.integer({ min: 4, max: 40 }),
        fc.integer(),
        async (cuts, bufferCount, seed) => {
          const { bench, worker, gate } = await setUp(partitions, descriptors, {
            seed,
            memoryBytes: bufferCount * bufferSizeBytes,
          })
          const reading = readAll(gate)
          for (const cutAt of cuts) {
            const [link] = await linksOf(bench, reading)
            link?.cutAfter('server', cutAt)
            await bench.world.clock.advance(300)
          }
          expect(await bench.drive(reading)).toEqual(expectedOf(5, 80))
          await bench.atRest([worker])
        },
      ),
      { numRuns: 60 },
    )
  })

  test('closed at any instant it gives everything back and hands out nothing more', async () => {
    const { partitions, descriptors } = await prepare(3, 40)
    for (let events = 0; events < 400; events += 7) {
      const { bench, worker, gate } = await setUp(partitions, descriptors)
      const reading = readAll(gate)
      await afterEvents(bench, events)
      const closing = gate.close()
      const outcome = await bench.drive(reading.then(() => 'ended', codeOf))
      expect(['ended', 'CANCELLED']).toContain(outcome)
      await bench.drive(closing)
      expect(gate.isClosed).toBe(true)
      await bench.atRest([worker])
      expect(bench.closedCount).toBe(1)
    }
  })

  test('aborted by its signal at any instant it rejects with CANCELLED', async () => {
    const { partitions, descriptors } = await prepare(3, 40)
    for (let events = 0; events < 200; events += 13) {
      const abort = new AbortController()
      const { bench, worker, gate } = await setUp(partitions, descriptors, {
        signal: abort.signal,
      })
      const reading = readAll(gate)
      await afterEvents(bench, events)
      abort.abort(new Error('the task is cancelled'))
      const outcome = await bench.drive(reading.then(() => 'ended', codeOf))
      expect(outcome).toBe(events < 20 ? 'CANCELLED' : outcome)
      expect(['ended', 'CANCELLED']).toContain(outcome)
      await bench.atRest([worker])
    }
  })

  test('with a signal that is aborted already it opens nothing', async () => {
    const { partitions, descriptors } = await prepare(1, 4)
    const signal = AbortSignal.abort(new Error('too late'))
    const { bench, worker, gate } = await setUp(partitions, descriptors, { signal })
    expect(await bench.drive(gate.nextBatch().then(() => 'ended', codeOf))).toBe('CANCELLED')
    expect(worker.dialCount).toBe(0)
    await bench.atRest([worker])
  })

  test('a batch that is kept past the close gives its memory back when it is recycled', async () => {
    const { partitions, descriptors } = await prepare(1, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const batch = await bench.drive(gate.nextBatch())
    await bench.drive(gate.close())
    batch?.recycle()
    await bench.atRest([worker])
  })

  test('a consumer that takes nothing holds back the worker, not the connection', async () => {
    const { partitions, descriptors } = await prepare(5, 200)
    const { bench, worker, gate } = await setUp(partitions, descriptors, {
      memoryBytes: 8 * bufferSizeBytes,
    })
    const first = await bench.drive(gate.nextBatch())
    await bench.world.clock.advance(20 * 60_000)
    expect(bench.usage.buffersInUse).toBeLessThanOrEqual(8)
    const received: Received = new Map()
    if (first !== undefined) collect(received, first)
    expect(await bench.drive(readAll(gate, received))).toEqual(expectedOf(5, 200))
    await bench.atRest([worker])
  })

  test('a broken checksum fails the partition it concerns, the others go on', async () => {
    const { partitions, descriptors } = await prepare(3, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    worker.faults.corrupt = (entry, index) => {
      if (index === 5) entry[20] = (entry[20] ?? 0) ^ 1
    }
    const received: Received = new Map()
    const codes = await bench.drive(readFailing(gate, received))
    expect(codes).toHaveLength(1)
    expect(codes[0]).toMatch(/^DATA_CORRUPT of/)
    const failed = gate.inputs().filter(({ state }) => state === 'failed')
    expect(failed).toHaveLength(1)
    const expected = expectedOf(3, 40)
    for (const [place, list] of expected) {
      if (!place.startsWith(`${String(failed[0]?.inputIndex)}/`)) {
        expect(received.get(place)).toEqual(list)
      }
    }
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('totals that differ from what came are COUNT_MISMATCH', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    worker.faults.miscounts = true
    const codes = await bench.drive(readFailing(gate))
    expect([...codes].sort()).toEqual(['COUNT_MISMATCH of 0', 'COUNT_MISMATCH of 1'])
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('data beyond the credit is a protocol error', async () => {
    const { partitions, descriptors } = await prepare(5, 200)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    worker.faults.ignoresCredit = true
    const codes = await bench.drive(readFailing(gate))
    expect(codes.every((code) => code.startsWith('PROTOCOL'))).toBe(true)
    expect(codes.length).toBeGreaterThan(0)
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('an unknown partition is told with its key, worker and index', async () => {
    const { partitions, descriptors } = await prepare(1, 4)
    partitions.clear()
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const error: unknown = await bench.drive(gate.nextBatch().catch((reason: unknown) => reason))
    expect(error).toBeInstanceOf(ShuffleError)
    expect(error).toMatchObject({
      code: 'PARTITION_NOT_FOUND',
      action: 'produce-again',
      fields: {
        ...descriptors[0]?.key,
        workerId: worker.workerId,
        inputIndex: 0,
      },
    })
    expect(bench.failures).toEqual(['PARTITION_NOT_FOUND'])
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('a failed partition of which nothing was handed out is read from another attempt', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const [first] = descriptors
    if (first === undefined) throw new Error('two descriptors')
    const again = descriptorOf(worker, { partitionIndex: 0, attempt: 1 })
    worker.faults.failPartitions.set(partitionKeyText(first.key), ['DISK_FAILED'])
    await bench.drive(
      bench.write(again, async (partition) => {
        await emitText(partition, 2, 'of the second attempt')
      }),
    )
    const received: Received = new Map()
    const reading = (async () => {
      await expect(readAll(gate, received)).rejects.toMatchObject({ code: 'DISK_FAILED' })
      gate.updatePartition(0, again)
      return readAll(gate, received)
    })()
    await bench.drive(reading)
    const expected = [...expectedOf(2, 40)].filter(([place]) => place.startsWith('1/'))
    expect(received).toEqual(new Map([...expected, ['0/2', ['of the second attempt']]]))
    await bench.atRest([worker])
  })

  test('never goes on with another attempt once something was handed out', async () => {
    const { partitions, descriptors } = await prepare(1, 200)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const batch = await bench.drive(gate.nextBatch())
    batch?.recycle()
    const again = descriptorOf(worker, { partitionIndex: 0, attempt: 1 })
    expect(() => {
      gate.updatePartition(0, again)
    }).toThrow(/handed out/)
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('when only failed inputs are left it tells them again and does not end', async () => {
    const { partitions, descriptors } = await prepare(1, 4)
    partitions.clear()
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    for (let time = 0; time < 3; time += 1) {
      expect(await bench.drive(gate.nextBatch().then(() => 'ended', codeOf))).toBe(
        'PARTITION_NOT_FOUND',
      )
    }
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('a pending partition is waited for until it is committed', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptors = [descriptorOf(worker), descriptorOf(worker, { partitionIndex: 1 })]
    const gate = bench.createGate(
      descriptors.map((descriptor) => wholeInput(descriptor, { isPending: true })),
    )
    const reading = readAll(gate)
    await bench.world.clock.advance(20_000)
    await writeSome(bench, worker, 0, 40)
    await bench.world.clock.advance(20_000)
    await writeSome(bench, worker, 1, 40)
    expect(await bench.drive(reading)).toEqual(expectedOf(2, 40))
    await bench.atRest([worker])
  })

  test('pending partitions are waited for across cuts', async () => {
    for (let cutAfterMs = 0; cutAfterMs < 40_000; cutAfterMs += 1300) {
      const bench = new ClientBench()
      const worker = await bench.startWorker('w1')
      const descriptors = [descriptorOf(worker), descriptorOf(worker, { partitionIndex: 1 })]
      const gate = bench.createGate(
        descriptors.map((descriptor) => wholeInput(descriptor, { isPending: true })),
      )
      const reading = readAll(gate)
      let cuts = 0
      bench.process.clock.setTimer(cutAfterMs, () => {
        cuts += 1
        for (const link of bench.world.network.linksOf('w1')) link.cut()
      })
      await bench.world.clock.advance(10_000)
      await writeSome(bench, worker, 0, 40)
      await bench.world.clock.advance(32_000)
      await writeSome(bench, worker, 1, 40)
      expect(await bench.drive(reading)).toEqual(expectedOf(2, 40))
      expect(cuts).toBe(1)
      await bench.atRest([worker])
    }
  })

  test('a partition that stays pending surfaces after the retry time, not before', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const gate = bench.createGate([wholeInput(descriptorOf(worker), { isPending: true })])
    const startMs = bench.world.clock.nowMs()
    expect(await bench.drive(gate.nextBatch().then(() => 'ended', codeOf))).toBe(
      'PARTITION_NOT_READY',
    )
    expect(bench.world.clock.nowMs() - startMs).toBeGreaterThanOrEqual(60_000)
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('a worker that comes back within its time goes on serving what it had', async () => {
    const { partitions, descriptors } = await prepare(3, 60)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const received: Received = new Map()
    const first = await bench.drive(gate.nextBatch())
    if (first !== undefined) collect(received, first)
    await bench.drive(worker.stop())
    const reading = readAll(gate, received)
    await bench.world.clock.advance(150_000)
    await bench.drive(worker.start())
    expect(await bench.drive(reading)).toEqual(expectedOf(3, 60))
    await bench.atRest([worker])
  })

  test('a worker at a new address is found through the manager', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    await bench.drive(worker.stop())
    const moved = await bench.startWorker('elsewhere', { partitions, name: worker.workerId })
    bench.locate = () =>
      Promise.resolve({ workerId: moved.workerId, host: 'elsewhere', port: moved.port })
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(2, 40))
    await bench.atRest([worker, moved])
  })

  test('a worker that stays away is WORKER_UNREACHABLE after the recovery time', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    await bench.drive(worker.stop())
    const startMs = bench.world.clock.nowMs()
    const codes = await bench.drive(readFailing(gate))
    expect([...codes].sort()).toEqual(['WORKER_UNREACHABLE of 0', 'WORKER_UNREACHABLE of 1'])
    expect(bench.world.clock.nowMs() - startMs).toBeGreaterThanOrEqual(195_000)
    expect(bench.world.clock.nowMs() - startMs).toBeLessThan(250_000)
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('another worker at the address, and none known elsewhere, is WORKER_CHANGED', async () => {
    const { partitions, descriptors } = await prepare(1, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    await bench.drive(worker.stop())
    const other = await bench.startWorker('w1', { name: 'a-stranger' })
    expect(await bench.drive(gate.nextBatch().then(() => 'ended', codeOf))).toBe('WORKER_CHANGED')
    await bench.drive(gate.close())
    await bench.atRest([worker, other])
  })

  test('a worker that hangs with our credit is given up after the idle time', async () => {
    const { partitions, descriptors } = await prepare(1, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    worker.faults.withholdsData = true
    expect(await bench.drive(gate.nextBatch().then(() => 'ended', codeOf))).toBe(
      'WORKER_UNREACHABLE',
    )
    await bench.drive(gate.close())
    await bench.atRest([worker])
  })

  test('reads through a busy worker', async () => {
    const { partitions, descriptors } = await prepare(2, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    worker.faults.refuseReads = ['BUSY', 'BUSY']
    const [first] = descriptors
    if (first !== undefined) {
      worker.faults.failPartitions.set(partitionKeyText(first.key), ['BUSY', 'BUSY'])
    }
    expect(await bench.drive(readAll(gate))).toEqual(expectedOf(2, 40))
    await bench.atRest([worker])
  })

  test('two gates of one process do not share memory: one that stands still stops nobody', async () => {
    const { partitions, descriptors } = await prepare(5, 200)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const held = await bench.drive(gate.nextBatch())
    const other = bench.createGate(descriptors.map((descriptor) => wholeInput(descriptor)))
    expect(await bench.drive(readAll(other))).toEqual(expectedOf(5, 200))
    await bench.drive(gate.close())
    expect(bench.connections.connectionCount).toBe(1)
    held?.recycle()
    await bench.atRest([worker])
  })

  test('is an async iterable', async () => {
    const { partitions, descriptors } = await prepare(1, 40)
    const { bench, worker, gate } = await setUp(partitions, descriptors)
    const received: Received = new Map()
    await bench.drive(
      (async () => {
        for await (const batch of gate) collect(received, batch)
      })(),
    )
    expect(received).toEqual(expectedOf(1, 40))
    await bench.atRest([worker])
  })
})

interface Prepared {
  readonly partitions: FakeWorker['partitions']
  readonly descriptors: readonly ShuffleDescriptor[]
}

async function prepare(partitionCount: number, recordCount: number): Promise<Prepared> {
  const bench = new ClientBench()
  const worker = await bench.startWorker('w1')
  const descriptors: ShuffleDescriptor[] = []
  for (let index = 0; index < partitionCount; index += 1) {
    descriptors.push(await writeSome(bench, worker, index, recordCount))
  }
  await bench.atRest([worker])
  return { partitions: worker.partitions, descriptors }
}

async function setUp(
  partitions: Prepared['partitions'],
  descriptors: Prepared['descriptors'],
  options: { seed?: number; memoryBytes?: number; signal?: AbortSignal } = {},
) {
  const { seed, ...gateOptions } = options
  const bench = new ClientBench(seed === undefined ? {} : { seed })
  const worker = await bench.startWorker('w1', { partitions })
  const gate = bench.createGate(
    descriptors.map((descriptor) => wholeInput(descriptor)),
    gateOptions,
  )
  return { bench, worker, gate }
}

/** The links to the worker, as soon as there is one, or the reading has ended. */
async function linksOf(bench: ClientBench, reading?: Promise<unknown>) {
  let isEnded = false
  void reading?.then(() => (isEnded = true))
  await bench.world.clock.runUntil(() => isEnded || bench.world.network.linksOf('w1').length > 0)
  return bench.world.network.linksOf('w1')
}

async function afterEvents(bench: ClientBench, count: number): Promise<void> {
  let left = count
  await bench.world.clock.runUntil(() => left-- <= 0 || bench.world.clock.eventCount === 0)
}

function codeOf(error: unknown): string {
  return isShuffleError(error) ? error.code : String(error)
}
