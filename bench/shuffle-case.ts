// One shape of shuffle, written and read for so many rounds, each beside its references:
//
//   round   append (reference) > write > read (references) > read, once for each way of reading
//
// Every round has fresh files; caches are dropped before each read.

import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type EnvironmentOptions,
  type JobId,
  type ShuffleDescriptor,
  type ShuffleMaster,
  shuffleServiceFactory,
} from '../client/index.ts'
import { dropFromCache, filesBelow, syncFiles } from './cold-files.ts'
import type { DiskResult, DiskShape } from './disk-reference.ts'
import { runFio } from './fio.ts'
import type { Consumer, ReadTask, TaskResult, WriteTask } from './load-tasks.ts'
import type { RoleProcess } from './role-process.ts'
import { type Sample, type Series, megabyte, mebibyte } from './series.ts'
import { ListWatch } from './list-watch.ts'
import { Session, type Measured } from './session.ts'
import { quantileOf } from './statistics.ts'

export interface ReadWay {
  readonly workload: string
  readonly name: string
  /** Groups of consumers, one group after the other. */
  readonly groups: readonly (readonly Consumer[])[]
  readonly reference: 'sequential' | 'random'
}

export interface ShuffleCase {
  readonly workload: string
  readonly name: string
  readonly partitions: number
  readonly subpartitions: number
  readonly sliceBytes: number
  /** Of subpartition 0, where it is another. */
  readonly firstSliceBytes?: number
  readonly recordBytes: number
  /** Partitions open at a time, over all producers. */
  readonly openCount: number
  readonly partitionMemoryBytes: number
  readonly gateMemoryBytes: number
  readonly reads: readonly ReadWay[]
  readonly reference: Pick<DiskShape, 'fileCount' | 'requestBytes'>
  readonly isBroadcast?: boolean
  readonly isCompressible?: boolean
  readonly codec?: 'lz4' | 'none'
  /** 32 KiB when not given; the worker's must be as large. */
  readonly bufferSizeBytes?: number
  readonly environmentOptions?: Partial<EnvironmentOptions>
  readonly workerArguments?: readonly string[]
  /** Beside each write, what checksums cost by themselves. */
  readonly withChecksumCost?: boolean
  /** Beside the first read, as much again is written. */
  readonly isWrittenMeanwhile?: boolean
}

export interface CaseSettings {
  readonly directory: string
  readonly rounds: number
  readonly isDirect: boolean
  readonly diskMark: string
  readonly workerArguments: readonly string[]
  readonly profileDirectory: string | undefined
  readonly producerProcesses: number
  readonly consumerProcesses: number
  readonly withFio: boolean
  readonly say: (line: string) => void
}

const appendDepth = 4
const readDepth = 8
const pumpBytesMax = 500_000_000
const checksummedBytes = 300_000_000
/** About what of a buffer is no payload. */
const entryHeadBytes = 64
const releaseTimeoutMs = 60_000

export async function runShuffleCase(
  shuffle: ShuffleCase,
  settings: CaseSettings,
): Promise<Series[]> {
  const session = await Session.start({
    directory: path.join(settings.directory, 'cluster'),
    workerArguments: [...settings.workerArguments, ...(shuffle.workerArguments ?? [])],
    diskMark: settings.diskMark,
    profileDirectory: settings.profileDirectory,
    environmentOptions: shuffle.environmentOptions ?? {},
    producerProcesses: settings.producerProcesses,
    consumerProcesses: settings.consumerProcesses,
  })
  const { managerUrl, clusterId } = session.cluster.place
  const master = shuffleServiceFactory.createShuffleMaster({
    managerUrl,
    clusterId,
    codec: shuffle.codec ?? 'none',
    ...(shuffle.bufferSizeBytes === undefined ? {} : { bufferSizeBytes: shuffle.bufferSizeBytes }),
  })
  await master.start()
  try {
    return await runRounds(new Rounds({ shuffle, settings, session, master }), settings)
  } finally {
    await master.close()
    await session.stop()
  }
}

async function runRounds(rounds: Rounds, settings: CaseSettings): Promise<Series[]> {
  // The first is not counted: code is compiled, pools and pages are touched.
  await rounds.run(0)
  for (let round = 1; round <= settings.rounds; round += 1) await rounds.run(round)
  return rounds.series()
}

interface Parts {
  readonly shuffle: ShuffleCase
  readonly settings: CaseSettings
  readonly session: Session
  readonly master: ShuffleMaster
}

type References = Readonly<Record<string, number>>

class Rounds {
  readonly #parts: Parts
  readonly #written: Sample[] = []
  readonly #read: Sample[][]

  constructor(parts: Parts) {
    this.#parts = parts
    this.#read = parts.shuffle.reads.map(() => [])
  }

  async run(round: number): Promise<void> {
    const { shuffle, settings, master } = this.#parts
    const jobId = parseJobId(`round-${String(round)}`)
    await master.registerJob({
      jobId,
      onPartitionsLost: (lost) => {
        throw new Error(`lost: ${JSON.stringify(lost[0])}`)
      },
      onJobFailed: (error) => {
        throw new Error(error.message)
      },
    })
    const shape = this.#shape()
    await mkdir(shape.directory, { recursive: true })
    const append = await this.#appendReference(shape)
    const descriptors = await this.#allocate(jobId, 'data')
    const written = withFigures(
      await this.#write(descriptors, append),
      shuffle.withChecksumCost === true ? await this.#checksumCost() : {},
    )
    if (round > 0) this.#written.push(written)
    settings.say(lineOf(shuffle.name, 'write', written))
    for (const [index, way] of shuffle.reads.entries()) {
      const references = await this.#readReferences(shape, way)
      const isBeside = shuffle.isWrittenMeanwhile === true && index === 0
      const beside = isBeside ? await this.#allocate(jobId, 'beside') : []
      const sample = await this.#readWay(way, { descriptors, beside, references })
      if (round > 0) this.#read[index]?.push(sample)
      settings.say(lineOf(shuffle.name, way.name, sample))
    }
    await master.unregisterJob(jobId)
    await rm(shape.directory, { recursive: true })
    await this.#untilReleased()
  }

  series(): Series[] {
    const { shuffle } = this.#parts
    const shape = this.#shape()
    const mode = shape.isDirect ? 'direct' : 'buffered'
    const files = `${String(shape.fileCount)} files`
    const request = sizeText(shape.requestBytes)
    return [
      {
        workload: shuffle.workload,
        name: shuffle.name,
        referenceShape: `append to ${files}, ${request}, depth ${String(appendDepth)}, ${mode}`,
        samples: this.#written,
      },
      ...shuffle.reads.map((way, index) => ({
        workload: way.workload,
        name: way.name,
        referenceShape: `${way.reference} read of ${files}, ${way.reference === 'random' ? sizeText(randomBytes(shuffle)) : request}, depth ${String(readDepth)}, ${mode}`,
        samples: this.#read[index] ?? [],
      })),
    ]
  }

  #shape(): DiskShape {
    const { shuffle, settings } = this.#parts
    const { partitions, subpartitions, sliceBytes, isBroadcast } = shuffle
    return {
      directory: path.join(settings.directory, 'reference'),
      ...shuffle.reference,
      depth: appendDepth,
      totalBytes:
        partitions *
        (sliceBytes * (isBroadcast === true ? 0 : subpartitions - 1) +
          (shuffle.firstSliceBytes ?? sliceBytes)),
      isDirect: settings.isDirect,
    }
  }

  async #appendReference(shape: DiskShape): Promise<References> {
    const { session, settings } = this.#parts
    const result = await session.reference.call('append', shape)
    const fio = settings.withFio ? await runFio('append', shape) : undefined
    return {
      append: rate(result),
      loopback: await this.#pumpReference(shape),
      ...(fio === undefined ? {} : { 'fio append': fio }),
    }
  }

  /** As many connections as the clients have. */
  async #pumpReference(shape: DiskShape): Promise<number> {
    const { reference, sink, producers } = this.#parts.session
    const port = await sink.call('openSink', undefined)
    const startMs = performance.now()
    const bytes = await reference.call('pump', {
      port,
      connectionCount: producers.length,
      totalBytes: Math.min(shape.totalBytes, pumpBytesMax),
    })
    await sink.call('received', bytes)
    return bytes / 1000 / (performance.now() - startMs)
  }

  async #readReferences(shape: DiskShape, way: ReadWay): Promise<References> {
    const { session, shuffle, settings } = this.#parts
    const request = { ...shape, depth: readDepth }
    await dropFromCache(shape.directory)
    const sequential = await session.reference.call('readBack', { ...request, order: 'sequential' })
    const rates: Record<string, number> = { sequential: rate(sequential) }
    if (shuffle.isWrittenMeanwhile === true) rates['both'] = await this.#bothReference(request)
    if (way.reference === 'random') {
      await dropFromCache(shape.directory)
      const random = { ...request, requestBytes: randomBytes(shuffle), order: 'random' as const }
      // Small requests are slow: a part of them is enough.
      const totalBytes = Math.min(shape.totalBytes, randomBytes(shuffle) * 40_000)
      rates['random'] = rate(await session.reference.call('readBack', { ...random, totalBytes }))
    }
    if (settings.withFio && way.reference === 'sequential') {
      await dropFromCache(shape.directory)
      rates['fio read'] = await runFio('read', request)
    }
    return rates
  }

  /** Reads and appends at the same time, each as much as the case does. */
  async #bothReference(shape: DiskShape): Promise<number> {
    const { reference, sink } = this.#parts.session
    const beside = { ...shape, directory: path.join(shape.directory, 'beside'), depth: appendDepth }
    await mkdir(beside.directory)
    await dropFromCache(shape.directory)
    const startMs = performance.now()
    const results = await Promise.all([
      reference.call('readBack', { ...shape, order: 'sequential' }),
      sink.call('append', beside),
    ])
    const seconds = (performance.now() - startMs) / 1000
    await rm(beside.directory, { recursive: true })
    return results.reduce((sum, { bytes }) => sum + bytes, 0) / megabyte / seconds
  }

  async #allocate(jobId: JobId, dataSet: string): Promise<ShuffleDescriptor[]> {
    const { shuffle, master } = this.#parts
    return await Promise.all(
      Array.from({ length: shuffle.partitions }, (_, partitionIndex) =>
        master.registerPartitionWithProducer(
          jobId,
          {
            dataSetId: parseDataSetId(dataSet),
            partitionIndex,
            totalPartitions: shuffle.partitions,
            subpartitionCount: shuffle.subpartitions,
            isBroadcast: shuffle.isBroadcast ?? false,
          },
          { attemptId: parseAttemptId('0') },
        ),
      ),
    )
  }

  async #write(descriptors: readonly ShuffleDescriptor[], references: References): Promise<Sample> {
    const { session } = this.#parts
    let results: readonly TaskResult[] = []
    const measured = await session.measure(async () => {
      results = await this.#writeAll(descriptors)
      await syncFiles(session.cluster.dataDirectory)
    })
    const storedBytes = results.reduce((sum, { storedBytes: stored }) => sum + stored, 0)
    return sampleOf({ measured, results, references, figures: { 'stored bytes': storedBytes } })
  }

  async #checksumCost(): Promise<Readonly<Record<string, number>>> {
    const { reference } = this.#parts.session
    const cost = (payloadBytes: number) =>
      reference.call('checksum', { payloadBytes, totalBytes: checksummedBytes })
    return {
      'checksum alone, CPU-s/GB, entries of 32 KiB': await cost(32 * 1024 - entryHeadBytes),
      'checksum alone, CPU-s/GB, entries of 4 KiB': await cost(4 * 1024 - entryHeadBytes),
    }
  }

  #writeAll(descriptors: readonly ShuffleDescriptor[]): Promise<TaskResult[]> {
    const { session, shuffle } = this.#parts
    const { producers } = session
    return Promise.all(
      producers.map((producer, index): Promise<TaskResult> => {
        const task: WriteTask = {
          descriptors: descriptors.filter((_, at) => at % producers.length === index),
          openCount: Math.ceil(shuffle.openCount / producers.length),
          sliceBytes: shuffle.sliceBytes,
          firstSliceBytes: shuffle.firstSliceBytes,
          recordBytes: shuffle.recordBytes,
          isBroadcast: shuffle.isBroadcast ?? false,
          memoryBytes: shuffle.partitionMemoryBytes,
          isCompressible: shuffle.isCompressible ?? false,
        }
        return producer.call('write', task)
      }),
    )
  }

  async #readWay(
    way: ReadWay,
    round: {
      readonly descriptors: readonly ShuffleDescriptor[]
      /** Written at the same time. */
      readonly beside: readonly ShuffleDescriptor[]
      readonly references: References
    },
  ): Promise<Sample> {
    const { session, shuffle } = this.#parts
    await dropFromCache(session.cluster.dataDirectory)
    const { descriptors, beside } = round
    const results: TaskResult[] = []
    const watch = new ListWatch(session.cluster)
    const measured = await session.measure(async () => {
      const writing = beside.length === 0 ? undefined : this.#writeAll(beside)
      for (const group of way.groups) {
        const tasks = share(session.consumers, group).map(([consumer, consumers]) => {
          const task: ReadTask = {
            descriptors,
            consumers,
            memoryBytes: shuffle.gateMemoryBytes,
          }
          return consumer.call('read', task)
        })
        results.push(...(await Promise.all(tasks)))
      }
      checkBytes(way, shuffle, results)
      if (writing === undefined) return
      results.push(...(await writing))
      await syncFiles(session.cluster.dataDirectory)
    })
    const lists = await watch.stop()
    const storedBytes = results.reduce((sum, { storedBytes: stored }) => sum + stored, 0)
    const finished = results.flatMap(({ finishedMs }) => finishedMs)
    const figures = {
      'device bytes per delivered': measured.worker.readBytes / storedBytes,
      'last consumer over median': Math.max(...finished) / quantileOf(finished, 0.5),
      ...lists,
    }
    return sampleOf({ measured, results, references: round.references, figures })
  }

  async #untilReleased(): Promise<void> {
    const { dataDirectory } = this.#parts.session.cluster
    const partitions = path.join(dataDirectory, 'partitions')
    const deadlineMs = performance.now() + releaseTimeoutMs
    while ((await filesBelow(partitions)).length > 0) {
      if (performance.now() > deadlineMs) throw new Error('the worker keeps released partitions')
      await sleep(20)
    }
  }
}

function sampleOf(parts: {
  readonly measured: Measured
  readonly results: readonly TaskResult[]
  readonly references: References
  readonly figures: Readonly<Record<string, number>>
}): Sample {
  const { measured, results, references, figures } = parts
  const bytes = results.reduce((sum, result) => sum + result.bytes, 0)
  return { ...measured, bytes, references, figures }
}

function withFigures(sample: Sample, more: Readonly<Record<string, number>>): Sample {
  return { ...sample, figures: { ...sample.figures, ...more } }
}

/** What was read must be what was written, to the byte. */
function checkBytes(way: ReadWay, shuffle: ShuffleCase, results: readonly TaskResult[]): void {
  const { sliceBytes, firstSliceBytes = sliceBytes } = shuffle
  const wanted = way.groups.flat().reduce((sum, { first, last, inputs }) => {
    const ofOne = (last - first + 1) * sliceBytes + (first === 0 ? firstSliceBytes - sliceBytes : 0)
    return sum + ofOne * inputs.length
  }, 0)
  const bytes = results.reduce((sum, result) => sum + result.bytes, 0)
  if (bytes === wanted) return
  throw new Error(`${way.name}: ${String(bytes)} bytes came back of ${String(wanted)}`)
}

function share(
  processes: readonly RoleProcess[],
  consumers: readonly Consumer[],
): (readonly [RoleProcess, readonly Consumer[]])[] {
  return processes.map((process, index) => [
    process,
    consumers.filter((_, at) => at % processes.length === index),
  ])
}

function randomBytes(shuffle: ShuffleCase): number {
  return Math.min(mebibyte, Math.max(4096, shuffle.sliceBytes))
}

function rate(result: DiskResult): number {
  return result.bytes / megabyte / result.seconds
}

function sizeText(bytes: number): string {
  return bytes >= mebibyte ? `${String(bytes / mebibyte)} MiB` : `${String(bytes / 1024)} KiB`
}

function lineOf(name: string, what: string, sample: Sample): string {
  const speed = (sample.bytes / megabyte / sample.seconds).toFixed(0)
  const references = Object.entries(sample.references)
    .map(([reference, value]) => `${reference} ${value.toFixed(0)}`)
    .join(', ')
  const cpu = Object.entries(sample.cpuSeconds)
    .map(([party, seconds]) => `${party} ${((seconds / sample.bytes) * 1e9).toFixed(2)}`)
    .join(' ')
  return `${name}, ${what}: ${speed} MB/s (${references}); CPU-s/GB ${cpu}; worker peak ${((sample.peakBytes.worker ?? 0) / mebibyte).toFixed(0)} MiB`
}
