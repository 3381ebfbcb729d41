// Every path with nothing in it gives an empty result at once, and everything is given back.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { scrape, TestCluster, until } from '../support/cluster.ts'

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ workers: 2 })
})
afterAll(async () => {
  await cluster.stop()
})

const all = { first: 0, last: 3 }

/** What of a worker must be back to zero when no job is left. */
const heldByWork = [
  'sluice_worker_connections',
  'sluice_worker_channels',
  'sluice_worker_buffers_held',
  'sluice_worker_credit_outstanding',
  'sluice_worker_disk_open_files',
  'sluice_worker_partitions{state="writing"}',
  'sluice_worker_partitions{state="committed"}',
  'sluice_worker_waiters',
  'sluice_worker_partitions_listed',
  'sluice_worker_connection_queued_bytes',
  'sluice_worker_memory_used_bytes',
  'sluice_worker_disk_reserved_bytes',
]

async function expectNothingHeld(): Promise<void> {
  for (const worker of cluster.workers) {
    await until('the worker holds nothing', async () => {
      const samples = await scrape(worker.httpUrl)
      const held = heldByWork.filter((name) => {
        const value = samples.get(name)
        if (value === undefined) throw new Error(`no metric ${name}`)
        return value !== 0
      })
      return held.length === 0
    })
  }
}

async function withJob(
  jobId: string,
  work: (client: EmbeddedClient) => Promise<void>,
): Promise<void> {
  await using client = await EmbeddedClient.start({ managerUrl: cluster.managerUrl, jobId })
  await work(client)
  await client.master.unregisterJob(client.jobId)
  const { environment } = client
  const left = environment.statistics()
  expect(left).toMatchObject({ openPartitions: 0, openGates: 0, channels: 0 })
  expect(left.waiters).toEqual([])
  // One is out until the frame that was on its way into it has come.
  await until('the client holds no buffer', () => environment.statistics().buffersInUse === 0)
}

describe('nothing in it', () => {
  it('a partition without records is committed and reads as empty', async () => {
    await withJob('empty-partition', async (client) => {
      const descriptor = await client.allocate(0, 4)
      await client.write(descriptor, [])
      expect(await client.read([descriptor], all)).toEqual([])
    })
    await expectNothingHeld()
  })

  it('a subpartition without records reads as empty, its neighbours as they are', async () => {
    await withJob('empty-subpartition', async (client) => {
      const descriptor = await client.allocate(0, 4)
      await client.write(descriptor, [['a'], [], ['c'], []])
      expect(await client.read([descriptor], { first: 1, last: 1 })).toEqual([])
      expect(await client.read([descriptor], all)).toEqual(['a', 'c'])
    })
    await expectNothingHeld()
  })

  it('a record of no bytes is a record', async () => {
    await withJob('empty-record', async (client) => {
      const descriptor = await client.allocate(0, 4)
      await client.write(descriptor, [['', ''], [''], [], []])
      expect(await client.read([descriptor], all)).toEqual(['', '', ''])
    })
  })

  it('a gate without inputs ends at once', async () => {
    await withJob('no-inputs', async (client) => {
      expect(await client.read([], all)).toEqual([])
    })
  })

  it('many empty partitions on both workers end at once', async () => {
    await withJob('many-empty', async (client) => {
      const descriptors = await Promise.all(
        Array.from({ length: 40 }, (_, index) => client.allocate(index, 4)),
      )
      for (const descriptor of descriptors) await client.write(descriptor, [])
      expect(await client.read(descriptors, all)).toEqual([])
    })
    await expectNothingHeld()
  })

  it('a partition that was never written is an error that names it, not empty', async () => {
    await withJob('never-written', async (client) => {
      const descriptor = await client.allocate(0, 4)
      await expect(client.read([descriptor], all)).rejects.toMatchObject({
        code: 'PARTITION_NOT_FOUND',
        fields: { partitionIndex: 0, attemptId: 'attempt-0' },
      })
    })
    await expectNothingHeld()
  })

  it('an aborted write leaves nothing', async () => {
    await withJob('aborted', async (client) => {
      const descriptor = await client.allocate(0, 4)
      const partition = client.environment.createResultPartition({ descriptor })
      const big = Buffer.alloc(300_000, 'x')
      for (let count = 0; count < 60; count++) await partition.emitRecord(big, count % 4)
      partition.abort()
      await expect(client.read([descriptor], all)).rejects.toMatchObject({ name: 'ShuffleError' })
    })
    await expectNothingHeld()
  })

  it('a consumer that stops in the middle leaves nothing', async () => {
    await withJob('stopped-consumer', async (client) => {
      const descriptor = await client.allocate(0, 1)
      const partition = client.environment.createResultPartition({ descriptor })
      const big = Buffer.alloc(100_000)
      for (let count = 0; count < 200; count++) {
        big.writeUInt32LE(Math.imul(count, 0x9e3779b1) >>> 0, (count * 4) % 99_000)
        await partition.emitRecord(big, 0)
      }
      await partition.finish()
      const gate = client.gate([descriptor], { first: 0, last: 0 })
      const batch = await gate.nextBatch()
      batch?.recycle()
      await gate.close()
    })
    await expectNothingHeld()
  })
})
