// What a master says in one heartbeat of all its jobs: the changes of their lists as far as a body takes
// them. What does not fit is told by the next heartbeat, which then does not wait.

import type { JobBeat } from '../manager/api-jobs.ts'
import { bodyBytesMax } from '../manager/schemas.ts'
import type { MasterJob } from './master-job.ts'

/** With the longest id and all its numbers. */
const quietBeatBytes = 320

/** Client, wait and the commands that were skipped. */
const aroundBeatsBytes = 128 * 1024

/** In the order of the jobs. The first change is told in any case: it fits by what a job tells at once. */
export function beatsOf(jobs: readonly MasterJob[]): JobBeat[] {
  let freeBytes = bodyBytesMax - aroundBeatsBytes - jobs.length * quietBeatBytes
  let isFirst = true
  return jobs.map((job) => {
    const { changeBytes } = job
    if (changeBytes === 0) return job.beat()
    if (changeBytes > freeBytes && !isFirst) return job.quietBeat()
    freeBytes -= changeBytes
    isFirst = false
    return job.beat()
  })
}
