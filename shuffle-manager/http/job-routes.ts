// Calls of job masters about their jobs.

import type { FastifyInstance } from 'fastify'
import { isErrorCode, isShuffleError } from '../../client/common/errors.ts'
import type { JobId } from '../../client/common/ids.ts'
import { managerApi } from '../../client/manager/api.ts'
import type { JobBeat, JobBeatAnswer } from '../../client/manager/api-jobs.ts'
import { jobPoll, type Cluster } from '../cluster/cluster.ts'
import type { ManagerMetrics } from '../manager-metrics.ts'
import { registerCall } from './route-registration.ts'

/** Longest wait that a caller may ask for: its silence must be noticed. */
export const pollWaitMaxMs = 60_000

export function registerJobRoutes(
  app: FastifyInstance,
  cluster: Cluster,
  metrics: ManagerMetrics,
): void {
  const { clock, options, jobLists } = cluster

  registerCall(app, { name: 'registerJob', route: managerApi.registerJob }, ({ params, body }) => ({
    jobEpoch: jobLists.register(params.jobId as JobId, body, {
      nowMs: clock.nowMs(),
      wallMs: clock.wallMs(),
    }),
    heartbeatIntervalMs: options.heartbeatIntervalMs,
    jobTimeoutMs: options.jobTimeoutMs,
  }))

  registerCall(
    app,
    { name: 'heartbeatJobs', route: managerApi.heartbeatJobs },
    async ({ body }) => {
      const taken = body.jobs.map((beat) => takeBeat(cluster, beat))
      const isQuiet = body.jobs.every(
        (beat, index) => taken[index] === 'ok' && !hasSomethingToSay(cluster, beat),
      )
      const waitMs = isQuiet ? Math.min(body.waitMs, pollWaitMaxMs) : 0
      await cluster.polls.wait(jobPoll(body.clientId), waitMs)
      // What happened meanwhile counts: the job may have been taken over, or have expired.
      return { jobs: body.jobs.map((beat, index) => answerBeat(cluster, beat, taken[index])) }
    },
  )

  registerCall(app, { name: 'detachJob', route: managerApi.detachJob }, ({ params, body }) => {
    const job = jobLists.held(params.jobId as JobId, body.jobEpoch)
    const keepMs = Math.min(body.keepMs ?? options.jobTimeoutMs, options.detachMaxMs)
    job.state = 'detached'
    job.heardMs = clock.nowMs()
    job.keepMs = keepMs
    cluster.events.add({ type: 'job-detached', jobId: job.jobId, keepMs })
    return { keepMs }
  })

  registerCall(app, { name: 'deleteJob', route: managerApi.deleteJob }, ({ params, query }) => {
    const jobId = params.jobId as JobId
    const job = cluster.jobs.get(jobId)
    if (job === undefined || job.state === 'ending') return { releasedCount: 0 }
    if (query.jobEpoch !== undefined) jobLists.checkMayEnd(job, Number(query.jobEpoch))
    cluster.events.add({ type: 'job-deleted', jobId })
    return { releasedCount: jobLists.end(job) }
  })

  registerCall(
    app,
    { name: 'reportFailures', route: managerApi.reportFailures },
    ({ params, body }) => {
      const job = cluster.job(params.jobId as JobId)
      cluster.jobs.addTimeInState(job, body.timeInStateMs)
      for (const failure of body.failures) {
        cluster.events.add({ type: 'client-report', jobId: job.jobId, ...failure })
        // A newer client may know codes that this manager doesn't.
        if (isErrorCode(failure.code)) metrics.clientReports.inc({ code: failure.code })
      }
      return {}
    },
  )
}

type Status = JobBeatAnswer['status']

function takeBeat(cluster: Cluster, beat: JobBeat): Status {
  const status = heldStatus(cluster, beat)
  if (status !== 'ok') return status
  const job = cluster.job(beat.jobId as JobId)
  return cluster.jobNews.take(job, beat, cluster.clock.nowMs()) ? 'ok' : 'resync'
}

function heldStatus(cluster: Cluster, beat: JobBeat): Status {
  try {
    const { state } = cluster.jobLists.held(beat.jobId as JobId, beat.jobEpoch)
    // Its client has said farewell: what was on its way then does not take that back, a registration does.
    return state === 'detached' ? 'unknown' : 'ok'
  } catch (error) {
    if (isShuffleError(error, 'SUPERSEDED')) return 'superseded'
    if (isShuffleError(error, 'JOB_UNKNOWN')) return 'unknown'
    throw error
  }
}

function hasSomethingToSay(cluster: Cluster, beat: JobBeat): boolean {
  return cluster.job(beat.jobId as JobId).hasSomethingToSay
}

function answerBeat(cluster: Cluster, beat: JobBeat, taken: Status | undefined): JobBeatAnswer {
  const { jobId } = beat
  const held = heldStatus(cluster, beat)
  const status = held === 'ok' ? (taken ?? 'ok') : held
  if (status !== 'ok') return { jobId, status, commands: [] }
  return { jobId, status, commands: cluster.jobNews.commands(cluster.job(jobId as JobId)) }
}
