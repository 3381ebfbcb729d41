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
  readonly environmentOptions?: Partial<EnvironmentOptions>
  readonly workerArguments?: readonly string[]
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
    const descriptors = await this.#allocate(`round-${String(round)}`)
    const written = await this.#write(descriptors, append)
    if (round > 0) this.#written.push(written)
    settings.say(lineOf(shuffle.name, 'write', written))
    for (const [index, way] of shuffle.reads.entries()) {
      const references = await this.#readReferences(shape, way)
      const sample = await this.#readWay(way, { descriptors, references })
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
      totalBytes: partitions * sliceBytes * (isBroadcast === true ? 1 : subpartitions),
      isDirect: settings.isDirect,
    }
  }

  async #appendReference(shape: DiskShape): Promise<References> {
    const { session, settings } = this.#parts
    const result = await session.reference.call('append', shape)
    const fio = settings.withFio ? await runFio('append', shape) : undefined
    return { append: rate(result), ...(fio === undefined ? {} : { 'fio append': fio }) }
  }

  async #readReferences(shape: DiskShape, way: ReadWay): Promise<References> {
    const { session, shuffle, settings } = this.#parts
    const request = { ...shape, depth: readDepth }
    await dropFromCache(shape.directory)
    const sequential = await session.reference.call('readBack', { ...request, order: 'sequential' })
    const rates: Record<string, number> = { sequential: rate(sequential) }
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

  async #allocate(job: string): Promise<ShuffleDescriptor[]> {
    const { shuffle, master } = this.#parts
    return await Promise.all(
      Array.from({ length: shuffle.partitions }, (_, partitionIndex) =>
        master.registerPartitionWithProducer(
          parseJobId(job),
          {
            dataSetId: parseDataSetId('data'),
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
    const { session, shuffle } = this.#parts
    const { producers } = session
    let results: TaskResult[] = []
    const measured = await session.measure(async () => {
      const tasks = producers.map((producer, index): Promise<TaskResult> => {
        const task: WriteTask = {
          descriptors: descriptors.filter((_, at) => at % producers.length === index),
          openCount: Math.ceil(shuffle.openCount / producers.length),
          sliceBytes: shuffle.sliceBytes,
          recordBytes: shuffle.recordBytes,
          isBroadcast: shuffle.isBroadcast ?? false,
          memoryBytes: shuffle.partitionMemoryBytes,
          isCompressible: shuffle.isCompressible ?? false,
        }
        return producer.call('write', task)
      })
      results = await Promise.all(tasks)
      await syncFiles(session.cluster.dataDirectory)
    })
    const storedBytes = results.reduce((sum, { storedBytes: stored }) => sum + stored, 0)
    return sampleOf({ measured, results, references, figures: { 'stored bytes': storedBytes } })
  }

  async #readWay(
    way: ReadWay,
    round: { readonly descriptors: readonly ShuffleDescriptor[]; readonly references: References },
  ): Promise<Sample> {
    const { session, shuffle } = this.#parts
    await dropFromCache(session.cluster.dataDirectory)
    const results: TaskResult[] = []
    const measured = await session.measure(async () => {
      for (const group of way.groups) {
        const tasks = share(session.consumers, group).map(([consumer, consumers]) => {
          const task: ReadTask = {
            descriptors: round.descriptors,
            consumers,
            memoryBytes: shuffle.gateMemoryBytes,
          }
          return consumer.call('read', task)
        })
        results.push(...(await Promise.all(tasks)))
      }
    })
    const storedBytes = results.reduce((sum, { storedBytes: stored }) => sum + stored, 0)
    checkBytes(way, shuffle, results)
    const finished = results.flatMap(({ finishedMs }) => finishedMs)
    const figures = {
      'device bytes per delivered': measured.worker.readBytes / storedBytes,
      'last consumer over median': Math.max(...finished) / quantileOf(finished, 0.5),
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

/** What was read must be what was written, to the byte. */
function checkBytes(way: ReadWay, shuffle: ShuffleCase, results: readonly TaskResult[]): void {
  const wanted = way.groups
    .flat()
    .reduce(
      (sum, consumer) => sum + (consumer.last - consumer.first + 1) * consumer.inputs.length,
      0,
    )
  const bytes = results.reduce((sum, result) => sum + result.bytes, 0)
  if (bytes === wanted * shuffle.sliceBytes) return
  throw new Error(
    `${way.name}: ${String(bytes)} bytes came back of ${String(wanted * shuffle.sliceBytes)}`,
  )
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
