// (h) continued: a million partitions that one manager tracks at the same time, allocated in stages, and
// what it takes of memory for each. None is written: what a partition costs its worker is another figure.

import { parseDataSetId, parseJobId } from '../client/index.ts'
import type { BenchOptions } from './bench-options.ts'
import { allocateStage, idOf, startMaster } from './control-plane.ts'
import { processCounters, residentBytes } from './process-figures.ts'
import type { Series } from './series.ts'
import type { CaseSettings } from './shuffle-case.ts'

const partitionsPerStage = 10_000

export async function runTrackedPartitions(
  options: BenchOptions,
  settings: CaseSettings,
): Promise<Series[]> {
  const { session, master } = await startMaster(settings)
  const { managerPid } = session.cluster
  try {
    const stageCount = options.isQuick ? 3 : 100
    // The first stage compiles code and is not counted.
    await allocateStage(master, stageAt(0))
    const residentBefore = residentBytes(managerPid)
    const cpuBefore = processCounters(managerPid).cpuSeconds
    const measured = await session.measure(async () => {
      for (let stage = 1; stage <= stageCount; stage += 1) {
        await allocateStage(master, stageAt(stage))
        if (stage % 10 === 0) settings.say(`tracked: ${String(stage * partitionsPerStage)}`)
      }
    })
    const count = stageCount * partitionsPerStage
    const cpuSeconds = processCounters(managerPid).cpuSeconds - cpuBefore
    const figures = {
      'partitions tracked': count,
      'resident bytes of the manager per tracked partition':
        (residentBytes(managerPid) - residentBefore) / count,
      'manager CPU-µs per allocation': (cpuSeconds * 1e6) / count,
      'manager peak MiB': (measured.peakBytes.manager ?? 0) / 1_048_576,
    }
    settings.say(`tracked: ${JSON.stringify(figures)}`)
    const sample = { ...measured, bytes: 0, references: {}, figures }
    const name = `${String(count)} partitions tracked`
    return [{ workload: 'h', name, referenceShape: 'none', samples: [sample] }]
  } finally {
    await master.close()
    await session.stop()
  }
}

function stageAt(stage: number) {
  return {
    partitions: partitionsPerStage,
    jobId: parseJobId(`tracked-${String(stage)}`),
    dataSetId: parseDataSetId(idOf('d', stage)),
  }
}
