import { describe, expect, test } from 'vitest'
import { isShuffleError, type ErrorCode } from '../../../client/common/errors.ts'
import { messages } from '../../../client/protocol/messages.ts'
import type { ResultPartition } from '../../../client/write/result-partition.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'
import type { FakeWorker } from '../support/fake-worker.ts'

async function writeOne(partition: ResultPartition): Promise<string> {
  try {
    for (let index = 0; index < 30; index += 1) {
      await partition.emitRecord(Buffer.alloc(700, index), index % 4)
    }
    await partition.finish()
    return 'committed'
  } catch (error) {
    return isShuffleError(error) ? error.code : String(error)
  }
}

async function run(
  arrange: (worker: FakeWorker, bench: ClientBench) => void | Promise<void>,
): Promise<{ outcome: string; ms: number; bench: ClientBench; worker: FakeWorker }> {
  const bench = new ClientBench()
  const worker = await bench.startWorker('w1')
  await arrange(worker, bench)
  const startMs = bench.world.clock.nowMs()
  const outcome = await bench.drive(writeOne(bench.createPartition(descriptorOf(worker))))
  return { outcome, ms: bench.world.clock.nowMs() - startMs, bench, worker }
}

describe('a write channel', () => {
  test('opens again while the worker is busy', async () => {
    const { outcome, bench, worker } = await run((busy) => {
      busy.faults.refuseWrites = ['BUSY', 'BUSY', 'BUSY']
    })
    expect(outcome).toBe('committed')
    await bench.atRest([worker])
  })

  test('many of the widest partitions finish at once on one connection', async () => {
    const bench = new ClientBench()
    bench.world.network.configure({ bytesPerMs: 100_000, chunking: 'whole' })
    const worker = await bench.startWorker('w1')
    const writing = Array.from({ length: 12 }, (_, partitionIndex) => {
      const descriptor = descriptorOf(worker, { partitionIndex, subpartitionCount: 131_072 })
      return writeOne(bench.createPartition(descriptor))
    })
    const outcomes = await bench.drive(Promise.all(writing))
    expect(new Set(outcomes)).toEqual(new Set(['committed']))
    expect(worker.dialCount).toBe(1)
    await bench.atRest([worker])
  })

  test('gives up opening a write after fifteen seconds', async () => {
    const { outcome, ms, bench, worker } = await run((busy) => {
      busy.faults.refuseWrites = Array.from({ length: 1000 }, () => 'BUSY' as const)
    })
    expect(outcome).toBe('BUSY')
    expect(ms).toBeGreaterThanOrEqual(15_000)
    expect(ms).toBeLessThan(25_000)
    await bench.atRest([worker])
  })

  test('a worker that cannot be reached is retried as long, and reached when it comes', async () => {
    const { outcome, bench, worker } = await run((_, { process, world }) => {
      world.network.refuse('w1')
      process.clock.setTimer(9000, () => {
        world.network.accept('w1')
      })
    })
    expect(outcome).toBe('committed')
    await bench.atRest([worker])
    const {
      outcome: never,
      bench: other,
      worker: away,
    } = await run((_, { world }) => {
      world.network.refuse('w1')
    })
    expect(never).toBe('WORKER_UNREACHABLE')
    await other.atRest([away])
  })

  test('an opening that gets no answer is given up', async () => {
    const { outcome, bench, worker } = await run((silent) => {
      silent.faults.withholdsOpening = true
    })
    expect(outcome).toBe('WORKER_UNREACHABLE')
    worker.faults.withholdsOpening = false
    await bench.atRest([worker])
  })

  test.each([
    'NO_SPACE',
    'STALE_ALLOCATION',
    'WRITER_CONFLICT',
    'WORKER_DRAINING',
    'LIMIT_EXCEEDED',
  ] satisfies ErrorCode[])('%s on opening fails at once', async (code) => {
    const { outcome, ms, bench, worker } = await run((refusing) => {
      refusing.faults.refuseWrites = [code]
    })
    expect(outcome).toBe(code)
    expect(ms).toBeLessThan(1000)
    await bench.atRest([worker])
  })

  test('a region that gets no credit for a minute is WRITE_INTERRUPTED', async () => {
    const { outcome, ms, bench, worker } = await run((withholding) => {
      withholding.faults.withholdsCredit = true
    })
    expect(outcome).toBe('WRITE_INTERRUPTED')
    expect(ms).toBeGreaterThanOrEqual(60_000)
    expect(ms).toBeLessThan(61_000)
    await bench.atRest([worker])
  })

  test('a commit that gets no answer for two minutes is WRITE_INTERRUPTED', async () => {
    const { outcome, ms, bench, worker } = await run((withholding) => {
      withholding.faults.withholdsCommit = true
    })
    expect(outcome).toBe('WRITE_INTERRUPTED')
    expect(ms).toBeGreaterThanOrEqual(120_000)
    await bench.atRest([worker])
  })

  test('other totals in the commit than were sent are COUNT_MISMATCH', async () => {
    const { outcome, bench, worker } = await run((wrong) => {
      wrong.faults.miscounts = true
    })
    expect(outcome).toBe('COUNT_MISMATCH')
    await bench.atRest([worker])
  })

  test('credit of a finished region counts for nothing', async () => {
    const { outcome, bench, worker } = await run((late) => {
      late.faults.intercept = (connection, message, channelId) => {
        if (message.name !== 'RegionStart' || message.fields.regionIndex === 0) return false
        connection.protocol.send(messages.AddCredit, channelId, {
          credit: 100,
          regionIndex: message.fields.regionIndex - 1,
        })
        return false
      }
    })
    // Had it been spent, the worker would have complained of data beyond its credit.
    expect(outcome).toBe('committed')
    await bench.atRest([worker])
  })

  test('an error of the worker in the middle of a region fails the write with its code', async () => {
    const { outcome, bench, worker } = await run((failing) => {
      failing.faults.intercept = (connection, message, channelId) => {
        if (message.name !== 'RegionFinish') return false
        connection.writes.delete(channelId)
        connection.sendError(channelId, 'DISK_FAILED')
        return true
      }
    })
    expect(outcome).toBe('DISK_FAILED')
    await bench.atRest([worker])
  })

  test('a channel that the worker closes is WRITE_INTERRUPTED', async () => {
    const { outcome, bench, worker } = await run((closing) => {
      closing.faults.intercept = (connection, message, channelId) => {
        if (message.name !== 'RegionStart') return message.name === 'ChannelClosed'
        connection.writes.delete(channelId)
        connection.protocol.send(messages.CloseChannel, channelId, { code: 0 })
        return true
      }
    })
    expect(outcome).toBe('WRITE_INTERRUPTED')
    await bench.atRest([worker])
    expect(worker.log).toContain('ChannelClosed 1')
  })

  test('a message out of place is a protocol error', async () => {
    const { outcome, bench, worker } = await run((confused) => {
      confused.faults.intercept = (connection, message, channelId) => {
        if (message.name !== 'RegionStart') return false
        connection.protocol.send(messages.ReadOpened, channelId, {})
        return false
      }
    })
    expect(outcome).toBe('PROTOCOL')
    await bench.atRest([worker])
  })

  test('errors carry the ids of the partition and of the worker', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    worker.faults.refuseWrites = ['NO_SPACE']
    const descriptor = descriptorOf(worker, { partitionIndex: 7 })
    const partition = bench.createPartition(descriptor)
    await expect(bench.drive(partition.finish())).rejects.toMatchObject({
      code: 'NO_SPACE',
      fields: { ...descriptor.key, workerId: worker.workerId },
    })
    await bench.atRest([worker])
  })
})
