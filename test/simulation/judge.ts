// Whether an error may reach the runtime. An error is an answer only where something has happened that
// can cause it; without a cause it is a finding.

import type { LogFields } from '../../client/common/log.ts'
import type { FaultInjector } from './fault-injector.ts'
import type { ErrorPlace } from './job.ts'
import { textOf } from './job.ts'
import type { Plan } from './plan.ts'
import type { Truth } from './truth.ts'

/** No fault of the simulation can cause these. */
const never = new Set([
  'PROTOCOL',
  'UNSUPPORTED_VERSION',
  'UNSUPPORTED_CODEC',
  'UNAUTHENTICATED',
  'INVALID_ARGUMENT',
  'LIMIT_EXCEEDED',
  'SUPERSEDED',
  'JOB_ID_IN_USE',
])
const ofDamage = new Set(['DATA_CORRUPT', 'COUNT_MISMATCH'])
/** The job itself releases what is being read. */
const ofRelease = new Set(['PARTITION_RELEASED', 'PARTITION_NOT_FOUND'])

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

export class Judge {
  readonly #plan: Plan
  readonly #injector: FaultInjector
  readonly #truth: Truth

  constructor(plan: Plan, injector: FaultInjector, truth: Truth) {
    this.#plan = plan
    this.#injector = injector
    this.#truth = truth
  }

  /** What is wrong with it; undefined when it may come. */
  complaintAbout(error: unknown, place: ErrorPlace): string | undefined {
    const { code } = error as { readonly code?: string }
    const what = `${place.during} of ${place.job}: ${textOf(error)}`
    if (code === undefined) {
      const isOurs = /task host died|twin|runtime cancels/.test(textOf(error))
      return isOurs ? undefined : `an error without a code: ${what} ${(error as Error).stack ?? ''}`
    }
    if (code === 'SUPERSEDED' && this.#injector.hasReplaced) return undefined
    if (never.has(code)) return `an error that nothing can cause: ${what}`
    if (place.attempt?.isReleased === true && ofRelease.has(code)) return undefined
    if (code === 'PARTITION_NOT_FOUND' && place.attempt?.state === 'committed') {
      if (!this.#injector.lostHosts.has(place.attempt.host ?? ''))
        return `a committed partition is gone: ${what}`
    }
    if (ofDamage.has(code) && !this.#isDamaged(place)) return `damage without a fault: ${what}`
    if (this.#injector.count === 0 && !this.#isOfThePlan(code)) {
      return `an error without a fault: ${what}`
    }
    return undefined
  }

  /** Whether a line of the log says that something is wrong which nothing has caused. */
  isLogBad(line: LogLine, host: string): boolean {
    const { level, message, fields } = line
    const isOpened = message === 'a data directory is open'
    const lostCount = isOpened ? Number(fields['lost']) : 0
    if (message === 'a partition is lost' || lostCount > this.#releasedCount(host)) {
      return !this.#injector.lostHosts.has(host)
    }
    if (message.includes('could not be written to any disk: a restart forgets it')) {
      return !this.#injector.sickHosts.has(host)
    }
    return level === 'error' || Object.values(fields).some(isAssertion)
  }

  /** The file of a released partition may be gone where the word of it had not reached the journal. */
  #releasedCount(host: string): number {
    let count = 0
    for (const attempt of this.#truth.attempts.values()) {
      if (attempt.isReleased && attempt.host === host) count += 1
    }
    return count
  }

  #isDamaged({ attempt }: ErrorPlace): boolean {
    const { damagedHosts } = this.#injector
    return attempt?.host === undefined ? damagedHosts.size > 0 : damagedHosts.has(attempt.host)
  }

  /** What jobs bring upon themselves. */
  #isOfThePlan(code: string): boolean {
    const { jobs } = this.#plan
    const isReleasing = jobs.some((job) => job.earlyReleaseChance > 0 || job.twinChance > 0)
    const isEager = jobs.some((job) => job.stages.some((stage) => stage.isEager))
    if (code === 'CANCELLED') return jobs.some((job) => job.cancelChance > 0)
    if (ofRelease.has(code) && (isReleasing || isEager)) return true
    return isEager && code === 'PARTITION_NOT_READY'
  }
}

function isAssertion(value: unknown): boolean {
  return String(value).includes('AssertionFailure')
}
