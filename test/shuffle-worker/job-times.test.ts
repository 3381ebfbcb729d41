import { describe, expect, it } from 'vitest'
import { parseJobId } from '../../client/common/ids.ts'
import { JobTimes } from '../../shuffle-worker/job-times.ts'

describe('job times', () => {
  it('adds up by job, kind and state until they are taken', () => {
    const times = new JobTimes()
    const jobId = parseJobId('job')
    times.add('write', { jobId, sums: { disk: 1.4, commit: 0 } })
    times.add('write', { jobId, sums: { disk: 2.2, commit: 1 } })
    times.add('read', { jobId: parseJobId('other'), sums: { credit: 3 } })
    expect(times.take()).toEqual({
      job: { 'write-disk': 4, 'write-commit': 1 },
      other: { 'read-credit': 3 },
    })
    expect(times.take()).toEqual({})
  })

  it('keeps a bounded number of jobs', () => {
    const times = new JobTimes()
    for (let job = 0; job < 2000; job++) {
      times.add('read', { jobId: parseJobId(`job-${String(job)}`), sums: { disk: 1 } })
    }
    expect(Object.keys(times.take()).length).toBe(1000)
  })
})
