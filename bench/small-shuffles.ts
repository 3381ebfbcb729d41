// (g) Small shuffles: a job of its own each time, 4 producers by 4 consumers with one record between
// each two, whole life cycle, 64 at a time.

import path from 'node:path'
import type { BenchOptions } from './bench-options.ts'
import type { Sample, Series } from './series.ts'
import { Session } from './session.ts'
import type { CaseSettings } from './shuffle-case.ts'
import { quantileOf } from './statistics.ts'

const atATime = 64

export async function runSmallShuffles(
  options: BenchOptions,
  settings: CaseSettings,
): Promise<Series[]> {
  const session = await Session.start({
    ...settings,
    directory: path.join(settings.directory, 'cluster'),
    environmentOptions: {},
    producerProcesses: 0,
    // One process is master and tasks alike: what goes between these is the runtime's affair.
    consumerProcesses: 1,
  })
  const jobCount = options.jobs
  const samples: Sample[] = []
  try {
    for (let round = 0; round <= settings.rounds; round += 1) {
      const sample = await runRound(session, { round, jobCount })
      if (round > 0) samples.push(sample)
      settings.say(`small shuffles: ${JSON.stringify(sample.figures)}`)
    }
  } finally {
    await session.stop()
  }
  return [{ workload: 'g', name: 'small shuffles, 4 by 4', referenceShape: 'none', samples }]
}

async function runRound(
  session: Session,
  { round, jobCount }: { readonly round: number; readonly jobCount: number },
): Promise<Sample> {
  const [runner] = session.consumers
  if (runner === undefined) throw new Error('small shuffles need a process')
  let durationsMs: readonly number[] = []
  const measured = await session.measure(async () => {
    const result = await runner.call('lifeCycles', {
      place: session.cluster.place,
      name: `small-${String(round)}`,
      jobCount,
      atATime,
      producers: 4,
      consumers: 4,
    })
    durationsMs = result.durationsMs
  })
  const { worker = 0, manager = 0, consumers = 0 } = measured.cpuSeconds
  const perJobMs = (seconds: number) => (seconds * 1000) / jobCount
  return {
    ...measured,
    bytes: 0,
    references: {},
    figures: {
      'life cycles per second': jobCount / measured.seconds,
      'CPU-ms per life cycle': perJobMs(worker + manager + consumers),
      'CPU-ms of the worker': perJobMs(worker),
      'CPU-ms of the manager': perJobMs(manager),
      'CPU-ms of the client': perJobMs(consumers),
      'p50 ms': quantileOf(durationsMs, 0.5),
      'p99 ms': quantileOf(durationsMs, 0.99),
      'worker peak MiB': (measured.peakBytes.worker ?? 0) / 1_048_576,
      'files opened': measured.diskOperations['open'] ?? 0,
    },
  }
}
