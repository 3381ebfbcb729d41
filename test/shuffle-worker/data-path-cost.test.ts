// What the data path costs in things that can be counted: disk calls and bytes allocated on the heap,
// for each GB that goes through client and worker. The bounds are what was counted and some more (bytes are sampled):
// who passes one has made the path dearer and should know it.

import { Session } from 'node:inspector'
import { describe, expect, it } from 'vitest'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../client/common/ids.ts'
import { silentLogger } from '../../client/common/log.ts'
import { optionValues } from '../../client/common/options.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { ShuffleEnvironment } from '../../client/shuffle-environment.ts'
import { workerOptions } from '../../shuffle-worker/options.ts'
import { ShuffleWorker } from '../../shuffle-worker/worker.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

const mebibyte = 1024 * 1024
const gigabyte = 1e9
const dataPort = 9710
const [partitions, subpartitions] = [8, 16]
const sliceBytes = mebibyte / 2
const recordBytes = 4092
const payloadBytes = partitions * subpartitions * sliceBytes

interface Counted {
  readonly writesPerGb: number
  readonly readsPerGb: number
  readonly diskBytesPerByteRead: number
  readonly allocatedPerGbWritten: number
  readonly allocatedPerGbRead: number
}

describe('the cost of the data path', () => {
  it('is bounded in disk calls and in bytes allocated', async () => {
    const counted = await count()
    process.stdout.write(`counted for each GB: ${JSON.stringify(counted)}\n`)
    expect(counted.writesPerGb).toBeLessThan(1400)
    expect(counted.readsPerGb).toBeLessThan(1600)
    expect(counted.diskBytesPerByteRead).toBeLessThan(1.02)
    expect(counted.allocatedPerGbWritten).toBeLessThan(0.36 * gigabyte)
    expect(counted.allocatedPerGbRead).toBeLessThan(0.36 * gigabyte)
  })
})

async function count(): Promise<Counted> {
  const world = new VirtualWorld({ seed: 1 })
  const worker = await world.drive(
    ShuffleWorker.start({
      world: world.start('worker'),
      options: optionValues(workerOptions, {
        dataDirectories: ['/data'],
        bindHost: '0.0.0.0',
        dataPort,
        memoryBytes: 256 * mebibyte,
        minReservedSpaceBytes: 0,
      }),
      directories: [{ path: '/data', kind: 'ssd' }],
      logger: silentLogger,
    }),
  )
  const environment = new ShuffleEnvironment({
    managerUrl: 'http://manager:9700',
    clusterId: 'sluice',
    world: world.start('task'),
  })
  const descriptors = Array.from({ length: partitions }, (_, index) => descriptorOf(worker, index))
  const written = await allocating(() =>
    world.drive(Promise.all(descriptors.map((each) => write(environment, each)))),
  )
  const atWritten = await countersOf(worker)
  let bytes = 0
  const read = await allocating(async () => {
    const consumers = Array.from({ length: subpartitions }, (_, index) =>
      readOne(environment, descriptors, index),
    )
    bytes = (await world.drive(Promise.all(consumers))).reduce((sum, each) => sum + each, 0)
  })
  expect(bytes).toBe(payloadBytes)
  const atRead = await countersOf(worker)
  const perGb = gigabyte / payloadBytes
  return {
    writesPerGb: atWritten.writes * perGb,
    readsPerGb: (atRead.reads - atWritten.reads) * perGb,
    diskBytesPerByteRead: atRead.sweptBytes / payloadBytes,
    allocatedPerGbWritten: written * perGb,
    allocatedPerGbRead: read * perGb,
  }
}

function descriptorOf(worker: ShuffleWorker, partitionIndex: number): ShuffleDescriptor {
  return {
    key: {
      jobId: parseJobId('job'),
      dataSetId: parseDataSetId('data'),
      partitionIndex,
      attemptId: parseAttemptId('0'),
    },
    holders: [
      {
        workerId: worker.workerId,
        host: 'worker',
        port: dataPort,
        firstSubpartition: 0,
        lastSubpartition: subpartitions - 1,
      },
    ],
    allocation: { managerEpoch: 1, jobEpoch: 1, sequence: partitionIndex + 1 },
    bufferSizeBytes: 32 * 1024,
    codec: 'none',
    subpartitionCount: subpartitions,
    isBroadcast: false,
    totalPartitions: partitions,
  }
}

async function write(environment: ShuffleEnvironment, descriptor: ShuffleDescriptor) {
  const partition = environment.createResultPartition({ descriptor })
  const record = new Uint8Array(recordBytes).fill(descriptor.key.partitionIndex)
  for (let done = 0; done < sliceBytes; done += recordBytes) {
    const part = record.subarray(0, Math.min(recordBytes, sliceBytes - done))
    for (let subpartition = 0; subpartition < subpartitions; subpartition += 1) {
      const wait = partition.emitRecord(part, subpartition)
      if (wait !== undefined) await wait
    }
  }
  await partition.finish()
}

async function readOne(
  environment: ShuffleEnvironment,
  descriptors: readonly ShuffleDescriptor[],
  subpartition: number,
): Promise<number> {
  const gate = environment.createInputGate({
    inputs: descriptors.map((descriptor) => ({
      descriptor,
      firstSubpartition: subpartition,
      lastSubpartition: subpartition,
    })),
  })
  let bytes = 0
  for await (const batch of gate) {
    if (batch.kind === 'records') bytes += batch.byteCount
    batch.recycle()
  }
  return bytes
}

async function countersOf(worker: ShuffleWorker) {
  const text = await worker.registry.metrics()
  const sum = (pattern: RegExp) =>
    [...text.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0)
  return {
    writes: sum(/^sluice_worker_disk_operations_total\{.*operation="write".*\} (\d+)$/gm),
    reads: sum(/^sluice_worker_disk_operations_total\{.*operation="read".*\} (\d+)$/gm),
    sweptBytes: sum(/^sluice_worker_sweep_read_bytes_total (\d+)$/gm),
  }
}

/** Bytes allocated on the heap during `work`, by a sample every 64 KiB; what was collected counts. */
async function allocating(work: () => Promise<unknown>): Promise<number> {
  const session = new Session()
  session.connect()
  const post = (method: string, options?: object) =>
    new Promise<unknown>((resolve, reject) => {
      session.post(method, options, (error, result) => {
        if (error === null) resolve(result)
        else reject(error)
      })
    })
  await post('HeapProfiler.startSampling', {
    samplingInterval: 65_536,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  await work()
  const { profile } = (await post('HeapProfiler.stopSampling')) as {
    readonly profile: { readonly head: SamplingNode }
  }
  session.disconnect()
  return sizeOf(profile.head, false)
}

interface SamplingNode {
  readonly callFrame: { readonly url: string }
  readonly selfSize: number
  readonly children: readonly SamplingNode[]
}

/** Of client and worker, not of the virtual world around them; built-in functions are their caller's. */
function sizeOf(node: SamplingNode, isCallerOurs: boolean): number {
  const { url } = node.callFrame
  const isOurs = url === '' ? isCallerOurs : /^(?!.*\/(test|node_modules)\/).*\.ts/.test(url)
  const own = isOurs ? node.selfSize : 0
  return node.children.reduce((sum, child) => sum + sizeOf(child, isOurs), own)
}
