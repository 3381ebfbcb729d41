// (h) The control plane: a stage of 1,000 and of 10,000 partitions, allocated in one batch by one
// ShuffleMaster, described for its consumers, released. Ids are as long as Flink's.

import path from 'node:path'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type ShuffleMaster,
  shuffleServiceFactory,
} from '../client/index.ts'
import type { BenchOptions } from './bench-options.ts'
import { processCounters } from './process-figures.ts'
import type { Sample, Series } from './series.ts'
import { Session } from './session.ts'
import type { CaseSettings } from './shuffle-case.ts'

/** Of a stage, and how often it is repeated, so that the ticks of processor time don't show. */
const stages = [
  { partitions: 1000, repeats: 50 },
  { partitions: 10_000, repeats: 5 },
]
const idDigits = 80

/** A cluster, and in this process the master of its jobs; no tasks. */
export async function startMaster(
  settings: CaseSettings,
): Promise<{ readonly session: Session; readonly master: ShuffleMaster }> {
  const session = await Session.start({
    ...settings,
    directory: path.join(settings.directory, 'cluster'),
    environmentOptions: {},
    producerProcesses: 0,
    consumerProcesses: 0,
  })
  const { managerUrl, clusterId } = session.cluster.place
  const master = shuffleServiceFactory.createShuffleMaster({ managerUrl, clusterId })
  await master.start()
  return { session, master }
}

export async function runControlPlane(
  options: BenchOptions,
  settings: CaseSettings,
): Promise<Series[]> {
  const { session, master } = await startMaster(settings)
  const series: Series[] = []
  try {
    for (const stage of stages) {
      const samples: Sample[] = []
      const repeats = options.isQuick ? 1 : stage.repeats
      for (let round = 0; round <= settings.rounds; round += 1) {
        const name = `${String(stage.partitions)}-${String(round)}`
        const sample = await runStage({ session, master }, { ...stage, repeats, name })
        if (round > 0) samples.push(sample)
        settings.say(`control plane: ${JSON.stringify(sample.figures)}`)
      }
      const name = `a stage of ${String(stage.partitions)} partitions`
      series.push({ workload: 'h', name, referenceShape: 'none', samples })
    }
  } finally {
    await master.close()
    await session.stop()
  }
  return series
}

interface Sides {
  readonly session: Session
  readonly master: ShuffleMaster
}

interface Stage {
  readonly partitions: number
  readonly repeats: number
  readonly name: string
}

async function runStage({ session, master }: Sides, stage: Stage): Promise<Sample> {
  const { cluster } = session
  const cpuMs = { allocate: 0, describe: 0, release: 0 }
  let descriptionBytes = 0
  const timed = async (step: keyof typeof cpuMs, work: () => Promise<void>) => {
    const before = processCounters(cluster.managerPid).cpuSeconds
    await work()
    cpuMs[step] += (processCounters(cluster.managerPid).cpuSeconds - before) * 1000
  }
  const measured = await session.measure(async () => {
    for (let repeat = 0; repeat < stage.repeats; repeat += 1) {
      const jobId = parseJobId(`stage-${stage.name}-${String(repeat)}`)
      const dataSetId = parseDataSetId(idOf('d', 0))
      await master.registerJob({
        jobId,
        onPartitionsLost: () => undefined,
        onJobFailed: () => undefined,
      })
      await timed('allocate', () =>
        allocateAll(master, { partitions: stage.partitions, jobId, dataSetId }),
      )
      await timed('describe', async () => {
        const url = `${cluster.place.managerUrl}/v1/jobs/${jobId}/data-sets/${dataSetId}`
        const answer = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
        descriptionBytes = (await answer.arrayBuffer()).byteLength
        if (!answer.ok) throw new Error(`the description was refused: ${String(answer.status)}`)
      })
      await timed('release', () => master.unregisterJob(jobId))
    }
  })
  const each = stage.partitions * stage.repeats
  return {
    ...measured,
    bytes: 0,
    references: {},
    figures: {
      'manager CPU-µs per allocation': (cpuMs.allocate * 1000) / each,
      'manager CPU-ms per stage, allocated': cpuMs.allocate / stage.repeats,
      'manager CPU-ms per stage, described': cpuMs.describe / stage.repeats,
      'manager CPU-ms per stage, released': cpuMs.release / stage.repeats,
      'description bytes': descriptionBytes,
      'manager peak MiB': (measured.peakBytes.manager ?? 0) / 1_048_576,
    },
  }
}

/** Registers the job and allocates all partitions of one stage in a batch. */
export async function allocateStage(
  master: ShuffleMaster,
  what: Parameters<typeof allocateAll>[1],
): Promise<void> {
  await master.registerJob({
    jobId: what.jobId,
    onPartitionsLost: () => undefined,
    onJobFailed: () => undefined,
  })
  await allocateAll(master, what)
}

async function allocateAll(
  master: ShuffleMaster,
  what: {
    readonly partitions: number
    readonly jobId: ReturnType<typeof parseJobId>
    readonly dataSetId: ReturnType<typeof parseDataSetId>
  },
): Promise<void> {
  const { partitions, jobId, dataSetId } = what
  await Promise.all(
    Array.from({ length: partitions }, (_, partitionIndex) =>
      master.registerPartitionWithProducer(
        jobId,
        {
          dataSetId,
          partitionIndex,
          totalPartitions: partitions,
          subpartitionCount: partitions,
          isBroadcast: false,
        },
        { attemptId: parseAttemptId(idOf('a', partitionIndex)) },
      ),
    ),
  )
}

/** 80 hexadecimal characters: most of them the same throughout a stage, as Flink's are. */
export function idOf(kind: 'a' | 'd', index: number): string {
  return kind.repeat(idDigits - 16) + index.toString(16).padStart(16, '0')
}
