// A job master's heartbeat: what it changes of its list, and what the answer tells it. Lost partitions
// are told until the list no longer has them; a question and a batch of commits until it is answered or
// seen. Owned by the manager.

import type { JobBeat, JobCommand, LostGroup } from '../../client/manager/api-jobs.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import { encodeAttempts, encodeKeys, groupBy } from '../../client/manager/key-columns.ts'
import type { EventRing } from './event-ring.ts'
import type { JobLists } from './job-lists.ts'
import type { JobRecord, JobRegistry } from './job-registry.ts'
import type { RowRef } from './partition-table.ts'
import type { PartitionLedger } from './partition-ledger.ts'
import type { WorkerRegistry } from './worker-registry.ts'

/** Keys of one command: a fraction of a megabyte. */
const commandKeysMax = 5_000

export class JobNews {
  readonly #jobs: JobRegistry
  readonly #workers: WorkerRegistry
  readonly #ledger: PartitionLedger
  readonly #lists: JobLists
  readonly #events: EventRing

  constructor(parts: {
    readonly jobs: JobRegistry
    readonly workers: WorkerRegistry
    readonly ledger: PartitionLedger
    readonly lists: JobLists
    readonly events: EventRing
  }) {
    this.#jobs = parts.jobs
    this.#workers = parts.workers
    this.#ledger = parts.ledger
    this.#lists = parts.lists
    this.#events = parts.events
  }

  /** False when the list has to be sent again. */
  take(job: JobRecord, beat: JobBeat, nowMs: number): boolean {
    job.heardMs = nowMs
    if (!job.isListed || !this.#takeChange(job, beat)) return false
    if (job.toldNews !== undefined && job.toldNews.number <= beat.newsSeen) {
      job.toldNews = undefined
    }
    if (beat.answered !== undefined) this.#takeAnswer(job, beat.answered)
    return true
  }

  /** A change that was taken before is no gap; one of which the former is missing is. */
  #takeChange(job: JobRecord, beat: JobBeat): boolean {
    const { sequence, claimed, dropped } = beat
    const hasChange = claimed !== undefined || dropped !== undefined
    if (hasChange && sequence === job.sequence + 1) {
      job.sequence = sequence
      this.#lists.claim(job, claimed ?? [])
      this.#lists.releaseKeys(job, dropped ?? [])
      return true
    }
    if (sequence <= job.sequence) return true
    job.isListed = false
    return false
  }

  /** What there is to say now; what was not acknowledged is said again. */
  commands(job: JobRecord): JobCommand[] {
    const commands: JobCommand[] = []
    const isNews = job.hasNewLost
    const lost = this.#lostGroups(job)
    if (isNews && lost.length > 0) {
      const count = lost.reduce((sum, group) => sum + group.attempts.length, 0)
      const { jobId, clientId = '' } = job
      this.#events.add({ type: 'loss-told', jobId, clientId, count })
    }
    if (lost.length > 0) commands.push({ type: 'lost', groups: lost })
    if (!job.isListed) return commands
    const question = (job.question ??= nextQuestion(job))
    if (question !== undefined) {
      const dataSets = encodeKeys(this.#keysOf(question.refs))
      commands.push({ type: 'asked', question: question.number, dataSets })
    }
    const told = (job.toldNews ??= nextNews(job))
    if (told !== undefined) {
      const dataSets = encodeKeys(this.#keysOf(told.refs))
      commands.push({ type: 'committed', news: told.number, dataSets })
    }
    return commands
  }

  /** What was asked about and is still not claimed is released. */
  #takeAnswer(job: JobRecord, answered: number): void {
    const { question } = job
    if (question?.number !== answered) return
    job.question = undefined
    for (const ref of [...question.refs]) {
      const at = this.#jobs.resolve(ref)
      if (at !== undefined && this.#ledger.isUnanswered(at)) this.#ledger.release(at)
    }
  }

  #lostGroups(job: JobRecord): LostGroup[] {
    const lost: (PartitionKey & { readonly workerId: string; readonly cause: string })[] = []
    job.hasNewLost = job.lost.size > commandKeysMax
    for (const ref of job.lost) {
      if (lost.length >= commandKeysMax) break
      const at = this.#jobs.resolve(ref)
      const key = this.#ledger.keyOf(ref)
      if (at === undefined || key === undefined) continue
      const { workerId } = this.#workers.at(at.table.worker(at.row))
      lost.push({ ...key, workerId, cause: job.lossCauses.get(ref) ?? 'lost' })
    }
    return groupBy(lost, ({ dataSetId, workerId, cause }) =>
      JSON.stringify([dataSetId, workerId, cause]),
    ).map(({ name, items }) => {
      const [dataSetId = '', workerId = '', cause = ''] = JSON.parse(name) as string[]
      return { dataSetId, workerId, cause, ...encodeAttempts(items) }
    })
  }

  #keysOf(refs: ReadonlySet<RowRef>): PartitionKey[] {
    return [...refs].map((ref) => this.#ledger.keyOf(ref)).filter((key) => key !== undefined)
  }
}

function nextQuestion(job: JobRecord): JobRecord['question'] {
  if (job.unclaimed.size === 0) return undefined
  return { number: ++job.questionNumber, refs: takeFirst(job.unclaimed) }
}

function nextNews(job: JobRecord): JobRecord['toldNews'] {
  if (job.news.size === 0) return undefined
  return { number: ++job.newsNumber, refs: takeFirst(job.news) }
}

/** As many as one command takes. */
function takeFirst(from: Set<RowRef>): Set<RowRef> {
  const refs = new Set<RowRef>()
  for (const ref of from) {
    if (refs.size >= commandKeysMax) break
    from.delete(ref)
    refs.add(ref)
  }
  return refs
}
