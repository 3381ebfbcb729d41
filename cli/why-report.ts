// What the manager's events say about one job: for each lost partition and each failed attempt which
// worker it was, when, what happened, who noticed and who was told; and where the job's time goes.

import { errorTable, isErrorCode } from '../client/common/errors.ts'
import type { EventRecord, JobSummary } from '../client/manager/api-workers.ts'
import { humanBytes, humanDuration, textTable } from './text-table.ts'

export interface Loss {
  readonly wallMs: number
  readonly dataSetId: string
  readonly workerId: string
  readonly cause: string
  readonly detector: string
  readonly count: number
  /** The first few. */
  readonly partitionIndices: readonly number[]
  /** Who heard of it first, and when; undefined: nobody yet. */
  readonly told: { readonly clientId: string; readonly wallMs: number } | undefined
}

export interface FailedAttempt {
  readonly wallMs: number
  readonly dataSetId: string
  readonly partitionIndex: number
  readonly attemptId: string
  readonly workerId: string
  readonly code: string
  readonly meaning: string
}

export interface WhyReport {
  readonly jobId: string
  /** Undefined once the job is gone: then its events are all there is. */
  readonly job: JobSummary | undefined
  readonly losses: readonly Loss[]
  readonly failures: readonly FailedAttempt[]
  readonly refusals: readonly EventRecord[]
  /** What happened to the job itself. */
  readonly jobEvents: readonly EventRecord[]
  /** What happened to the workers named above. */
  readonly workerEvents: readonly EventRecord[]
  readonly timeInStateMs: Readonly<Record<string, number>>
  /** Older events that the manager no longer has. */
  readonly forgottenEvents: number
}

const apart = ['partitions-lost', 'client-report', 'allocation-refused', 'loss-told']

export function whyReport(
  jobId: string,
  told: {
    readonly job: JobSummary | undefined
    readonly events: readonly EventRecord[]
    readonly forgotten: number
  },
): WhyReport {
  const own = told.events.filter((event) => event['jobId'] === jobId)
  const ofType = (type: string) => own.filter((event) => event.type === type)
  const losses = ofType('partitions-lost').map((event) => lossOf(event, ofType('loss-told')))
  const failures = ofType('client-report').map(failureOf)
  const workers = new Set([...losses, ...failures].map(({ workerId }) => workerId))
  return {
    jobId,
    job: told.job,
    losses,
    failures,
    refusals: ofType('allocation-refused'),
    jobEvents: own.filter(({ type }) => !apart.includes(type)),
    workerEvents: told.events.filter(
      (event) => event['jobId'] === undefined && workers.has(textOf(event, 'workerId')),
    ),
    timeInStateMs: told.job?.timeInStateMs ?? {},
    forgottenEvents: told.forgotten,
  }
}

function lossOf(event: EventRecord, tellings: readonly EventRecord[]): Loss {
  const telling = tellings.find(({ number }) => number > event.number)
  const indices = event['partitionIndices']
  return {
    wallMs: event.wallMs,
    dataSetId: textOf(event, 'dataSetId'),
    workerId: textOf(event, 'workerId'),
    cause: textOf(event, 'cause'),
    detector: textOf(event, 'detector'),
    count: Number(event['count']),
    partitionIndices: Array.isArray(indices) ? indices.map(Number) : [],
    told:
      telling === undefined
        ? undefined
        : { clientId: textOf(telling, 'clientId'), wallMs: telling.wallMs },
  }
}

function failureOf(event: EventRecord): FailedAttempt {
  const code = textOf(event, 'code')
  const meaning = isErrorCode(code)
    ? errorTable[code].about
    : 'a code that this version does not know'
  return {
    wallMs: event.wallMs,
    dataSetId: textOf(event, 'dataSetId'),
    partitionIndex: Number(event['partitionIndex']),
    attemptId: textOf(event, 'attemptId'),
    workerId: textOf(event, 'workerId'),
    code,
    meaning,
  }
}

function textOf(event: EventRecord, field: string): string {
  const value = event[field]
  return typeof value === 'string' ? value : ''
}

/** Who notices a loss, in words. */
const detectors: Readonly<Record<string, string>> = {
  worker: 'the worker said so',
  liveness: 'the manager, by its silence',
  lists: 'the manager, by its list',
}

const rowsMax = 50

export function describeWhy(report: WhyReport): string {
  const parts = [describeJob(report)]
  if (report.losses.length > 0) parts.push(section('Lost partitions', lossTable(report.losses)))
  if (report.failures.length > 0) {
    parts.push(section('Failed reads and writes', failureTable(report.failures)))
  }
  if (report.refusals.length > 0) {
    parts.push(section('Refused allocations', eventTable(report.refusals)))
  }
  const isWell = parts.length === 1
  if (isWell) parts.push('Nothing of it was lost, failed or refused.\n')
  parts.push(section('Events of the job', eventTable(report.jobEvents)))
  if (report.workerEvents.length > 0) {
    parts.push(section('Events of these workers', eventTable(report.workerEvents)))
  }
  parts.push(section('Where the time of its channels and tasks goes', timeTable(report)))
  if (report.forgottenEvents > 0) {
    parts.push(
      `${report.forgottenEvents} older events are forgotten (the manager keeps events-max of them)\n`,
    )
  }
  return parts.join('\n')
}

function describeJob({ jobId, job }: WhyReport): string {
  if (job === undefined) {
    return `${jobId} is not known any more: it ended, or was released. This is what its events say.\n`
  }
  const { partitionCount, committedCount, lostCount, byteCount, clientId } = job
  const holder = clientId === undefined ? 'known from workers alone' : `held by ${clientId}`
  return `${jobId} is ${job.state}, ${holder}, last heard of ${humanDuration(job.silentMs)} ago: ${partitionCount} partitions, ${committedCount} committed (${humanBytes(byteCount)}), ${lostCount} lost\n`
}

function section(title: string, text: string): string {
  return `${title}\n${text}`
}

function lossTable(losses: readonly Loss[]): string {
  return bounded(
    ['WHEN', 'DATA SET', 'PARTITIONS', 'WORKER', 'WHAT HAPPENED', 'NOTICED BY', 'TOLD TO'],
    losses.map((loss) => [
      clock(loss.wallMs),
      loss.dataSetId,
      listed(loss.partitionIndices, loss.count),
      loss.workerId,
      loss.cause,
      detectors[loss.detector] ?? loss.detector,
      loss.told === undefined ? 'nobody yet' : `${loss.told.clientId} ${clock(loss.told.wallMs)}`,
    ]),
  )
}

function failureTable(failures: readonly FailedAttempt[]): string {
  return bounded(
    ['WHEN', 'DATA SET', 'PARTITION', 'ATTEMPT', 'WORKER', 'WHAT HAPPENED'],
    failures.map((one) => [
      clock(one.wallMs),
      one.dataSetId,
      String(one.partitionIndex),
      one.attemptId,
      one.workerId,
      `${one.code}: ${one.meaning}`,
    ]),
  )
}

function eventTable(events: readonly EventRecord[]): string {
  const isShown = (name: string) => !['number', 'wallMs', 'type', 'jobId'].includes(name)
  return bounded(
    ['WHEN', 'WHAT', 'MORE'],
    events.map((event) => [
      clock(event.wallMs),
      event.type,
      Object.entries(event)
        .filter(([name]) => isShown(name))
        .map(([name, value]) => `${name}=${String(value)}`)
        .join(' '),
    ]),
  )
}

function timeTable({ timeInStateMs }: WhyReport): string {
  const sums = Object.entries(timeInStateMs).sort(([, one], [, other]) => other - one)
  const total = sums.reduce((sum, [, ms]) => sum + ms, 0)
  if (total === 0) return 'nothing is known of it (yet)\n'
  return textTable(
    ['STATE', 'TIME', 'SHARE'],
    sums.map(([state, ms]) => [state, humanDuration(ms), `${((100 * ms) / total).toFixed(1)} %`]),
  )
}

/** The latest rows of a long table. */
function bounded(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'none\n'
  const table = textTable(head, rows.slice(-rowsMax))
  const left = rows.length - rowsMax
  return left > 0 ? `${table}and ${left} before these; --json has all\n` : table
}

function listed(indices: readonly number[], count: number): string {
  const shown = indices.join(', ')
  return count > indices.length ? `${count}: ${shown}, …` : shown
}

/** UTC, to the second. */
function clock(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 19).replace('T', ' ')
}
