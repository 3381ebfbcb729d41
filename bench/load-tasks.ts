// What producers and consumers do in the load processes: the real client, records of one size, every
// byte counted on the way back.

import {
  type EnvironmentOptions,
  type EnvironmentStatistics,
  type ShuffleDescriptor,
  type ShuffleEnvironment,
  shuffleServiceFactory,
} from '../client/index.ts'

export interface ClusterPlace {
  readonly managerUrl: string
  readonly clusterId: string
  readonly options: Partial<EnvironmentOptions>
}

export interface WriteTask {
  readonly descriptors: readonly ShuffleDescriptor[]
  /** Partitions that are open at a time. */
  readonly openCount: number
  /** Of each subpartition of each partition, in records of at most so many bytes. */
  readonly sliceBytes: number
  /** Of subpartition 0, where it is another. */
  readonly firstSliceBytes?: number | undefined
  readonly recordBytes: number
  /** Each record goes to every subpartition. */
  readonly isBroadcast: boolean
  readonly memoryBytes: number
  readonly isCompressible: boolean
}

export interface ReadTask {
  readonly descriptors: readonly ShuffleDescriptor[]
  /** One consumer for each range of subpartitions: first and last, and the inputs it reads. */
  readonly consumers: readonly Consumer[]
  readonly memoryBytes: number
}

export interface Consumer {
  readonly first: number
  readonly last: number
  /** Indexes of descriptors. */
  readonly inputs: readonly number[]
}

export interface TaskResult {
  /** Payload bytes of records. */
  readonly bytes: number
  /** Bytes of entries as stored, or as received. */
  readonly storedBytes: number
  /** Milliseconds from the beginning of the task, by consumer or partition. */
  readonly finishedMs: readonly number[]
  readonly firstByteMs: readonly number[]
}

/** Enough that neighbouring records differ, small enough to stay in the cache. */
const contentBytes = 1024 * 1024

export function openEnvironment(place: ClusterPlace): ShuffleEnvironment {
  const { managerUrl, clusterId, options } = place
  return shuffleServiceFactory.createShuffleEnvironment({ managerUrl, clusterId, options })
}

export function isAtRest(statistics: EnvironmentStatistics): boolean {
  return statistics.channels === 0 && statistics.buffersInUse === 0
}

export async function write(environment: ShuffleEnvironment, task: WriteTask): Promise<TaskResult> {
  const content = contentOf(task)
  const startMs = performance.now()
  const waiting = [...task.descriptors]
  const finishedMs: number[] = []
  let [bytes, storedBytes] = [0, 0]
  const lanes = Array.from({ length: task.openCount }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const written = await writePartition(environment, next, { task, content })
      bytes += written.bytes
      storedBytes += written.storedBytes
      finishedMs.push(performance.now() - startMs)
    }
  })
  await Promise.all(lanes)
  return { bytes, storedBytes, finishedMs, firstByteMs: [] }
}

async function writePartition(
  environment: ShuffleEnvironment,
  descriptor: ShuffleDescriptor,
  { task, content }: { readonly task: WriteTask; readonly content: Uint8Array },
): Promise<{ readonly bytes: number; readonly storedBytes: number }> {
  const { sliceBytes, recordBytes, isBroadcast, memoryBytes, firstSliceBytes = sliceBytes } = task
  const subpartitions = isBroadcast ? 1 : descriptor.subpartitionCount
  const partition = environment.createResultPartition({
    descriptor,
    memoryBytes,
    expectedBytes: sliceBytes * (subpartitions - 1) + firstSliceBytes,
  })
  let bytes = 0
  let at = descriptor.key.partitionIndex * 4099
  for (let done = 0; done < Math.max(sliceBytes, firstSliceBytes); done += recordBytes) {
    for (let subpartition = 0; subpartition < subpartitions; subpartition += 1) {
      const length = Math.min(
        recordBytes,
        (subpartition === 0 ? firstSliceBytes : sliceBytes) - done,
      )
      if (length <= 0) continue
      at = (at + 61) % (content.length - recordBytes)
      const record = content.subarray(at, at + length)
      const wait = isBroadcast
        ? partition.broadcastRecord(record)
        : partition.emitRecord(record, subpartition)
      if (wait !== undefined) await wait
      bytes += length
    }
  }
  const committed = await partition.finish()
  return { bytes, storedBytes: committed.storedBytes }
}

export async function read(environment: ShuffleEnvironment, task: ReadTask): Promise<TaskResult> {
  const startMs = performance.now()
  const results = await Promise.all(
    task.consumers.map(async (consumer) => {
      const gate = environment.createInputGate({
        inputs: consumer.inputs.map((index) => ({
          descriptor: descriptorAt(task, index),
          firstSubpartition: consumer.first,
          lastSubpartition: consumer.last,
        })),
        memoryBytes: task.memoryBytes,
      })
      let bytes = 0
      let firstByteMs = -1
      for await (const batch of gate) {
        if (firstByteMs < 0) firstByteMs = performance.now() - startMs
        if (batch.kind === 'records') {
          batch.forEach((_, start, end) => {
            bytes += end - start
          })
        }
        batch.recycle()
      }
      const storedBytes = gate.inputs().reduce((sum, input) => sum + input.byteCount, 0)
      await gate.close()
      return { bytes, storedBytes, firstByteMs, finishedMs: performance.now() - startMs }
    }),
  )
  return {
    bytes: results.reduce((sum, result) => sum + result.bytes, 0),
    storedBytes: results.reduce((sum, result) => sum + result.storedBytes, 0),
    finishedMs: results.map((result) => result.finishedMs),
    firstByteMs: results.map((result) => result.firstByteMs),
  }
}

function descriptorAt(task: ReadTask, index: number): ShuffleDescriptor {
  const descriptor = task.descriptors[index]
  if (descriptor === undefined) throw new Error(`no partition ${String(index)} in the task`)
  return descriptor
}

/** Noise that LZ4 can't shrink, or rows of numbers that it shrinks to about a half. */
function contentOf({ isCompressible }: WriteTask): Uint8Array {
  const bytes = new Uint8Array(contentBytes)
  let state = 0x9e37_79b9
  for (let index = 0; index < bytes.length; index += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[index] = isCompressible && index % 8 < 4 ? 0 : state & 0xff
  }
  return bytes
}
