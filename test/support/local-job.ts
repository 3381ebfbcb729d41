// Runs a prepared job with its real tasks over a shuffle in memory.

import { realClock } from '../../client/common/clock.ts'
import { realRandom } from '../../client/common/random.ts'
import { silentLogger } from '../../client/index.ts'
import { JobMaster } from '../../runtime/job-master.ts'
import type { JobResult } from '../../runtime/job-result.ts'
import { tasks } from '../../runtime/jobs/all-tasks.ts'
import type { JobOutput, PreparedJob } from '../../runtime/jobs/prepared-job.ts'
import { LocalTaskProcesses } from './local-task-processes.ts'
import { MemoryShuffle } from './memory-shuffle.ts'

export interface LocalJobRun {
  readonly result: JobResult
  readonly output: JobOutput
}

/** `onShuffle` sees the shuffle before the job starts, to break things. */
export async function runLocally(
  job: PreparedJob,
  spillDirectory: string,
  onShuffle: (shuffle: MemoryShuffle) => void = () => undefined,
): Promise<LocalJobRun> {
  const shuffle = new MemoryShuffle()
  onShuffle(shuffle)
  const master = new JobMaster(
    {
      world: { clock: realClock, random: realRandom },
      logger: silentLogger,
      shuffleMaster: shuffle.master(),
      startTaskProcess: new LocalTaskProcesses(shuffle, tasks).start,
      cluster: { managerUrl: 'http://unused', clusterId: 'test' },
      processCount: 2,
      slotsPerProcess: 2,
      spillDirectory,
      limits: { retryDelayMinMs: 0, retryDelayMaxMs: 1 },
    },
    job.plan,
  )
  try {
    await job.begin()
    const result = await master.run()
    return { result, output: await job.commit(result.results) }
  } finally {
    await job.discard()
  }
}
