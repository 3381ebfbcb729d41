// The job master's side of the shuffle, shaped like Flink's ShuffleMaster. One per job master
// process, for any number of jobs: it registers them, asks for partitions, releases them and learns
// of lost ones. Its list of partitions is the truth about what should exist.
//
// One loop speaks for all jobs: it registers and reports what the present manager has not been told,
// then heartbeats, a long poll. Allocations and releases are calls of their own, in batches.

import { setMaxListeners } from 'node:events'
import { sleep, type Clock } from '../common/clock.ts'
import { ShuffleError, isShuffleError, type ErrorCode } from '../common/errors.ts'
import type { JobId, PartitionKey } from '../common/ids.ts'
import { parseClientId, type ClientId } from '../common/ids.ts'
import type { Logger } from '../common/log.ts'
import { randomHex } from '../common/random.ts'
import type { World } from '../common/world.ts'
import { managerApi } from '../manager/api.ts'
import type { JobBeatAnswer } from '../manager/api-jobs.ts'
import type { ManagerClient } from '../manager/manager-client.ts'
import type { DataSetFacts } from '../manager/schemas.ts'
import { AllocationBatches, type AllocationBatch } from './allocation-batches.ts'
import { beatsOf } from './job-beats.ts'
import { allocateBatch, registerAndReport, sendReleases } from './manager-calls.ts'
import { MasterJob } from './master-job.ts'
import type { ShuffleDescriptor } from './shuffle-descriptor.ts'
import type {
  JobShuffleContext,
  PartitionDescriptor,
  ProducerDescriptor,
} from './shuffle-master-types.ts'

export interface ShuffleMasterOptions {
  readonly world: Pick<World, 'clock' | 'random'>
  readonly logger: Logger
  /** Owned by the caller: closed by whoever made it. */
  readonly managerClient: ManagerClient
  readonly bufferSizeBytes: number
  readonly codec: string
  /** Until the manager says its own. */
  readonly heartbeatIntervalMs?: number
  /** How long an allocation is tried before its error surfaces. */
  readonly allocateForMs?: number
}

const heartbeatIntervalDefaultMs = 5_000
const allocateForDefaultMs = 10_000
/** Between heartbeats that fail, and between tries of an allocation that no worker fits. */
const pauseMs = 250
/** Of the last words of a master that closes. */
const closeForMs = 1_000

export class ShuffleMaster {
  readonly #clock: Clock
  readonly #options: ShuffleMasterOptions
  readonly #logger: Logger
  readonly #client: ManagerClient
  readonly #clientId: ClientId
  readonly #jobs = new Map<JobId, MasterJob>()
  readonly #batches: AllocationBatches
  readonly #closed = new AbortController()
  readonly #registrations = new Map<MasterJob, Promise<void>>()
  /** Jobs of whose end the manager is being told: one that begins anew by the same name waits for it. */
  readonly #ends = new Map<JobId, Promise<unknown>>()
  readonly #underWay = new Set<Promise<void>>()
  #heartbeatIntervalMs: number
  #isReleasing = false
  #wake: (() => void) | undefined
  #loop: Promise<void> | undefined

  constructor(options: ShuffleMasterOptions) {
    this.#options = options
    this.#clock = options.world.clock
    this.#logger = options.logger
    this.#client = options.managerClient
    this.#clientId = parseClientId(`client-${randomHex(options.world.random, 16)}`)
    this.#heartbeatIntervalMs = options.heartbeatIntervalMs ?? heartbeatIntervalDefaultMs
    // Every call that is under way listens to it.
    setMaxListeners(0, this.#closed.signal)
    this.#batches = new AllocationBatches({
      clock: this.#clock,
      send: (batch) => {
        this.#background(this.#allocate(batch))
      },
    })
  }

  /** Begins to heartbeat. */
  start(): Promise<void> {
    this.#loop ??= this.#run()
    return Promise.resolve()
  }

  /** Stops; jobs that are still registered are neither released nor detached. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return
    const released = this.#flushReleases({ retryForMs: closeForMs })
    this.#closed.abort(new ShuffleError('CANCELLED', 'the shuffle master was closed'))
    this.#wake?.()
    await released
    await this.#loop
    await Promise.all(this.#underWay)
  }

  /** Rejects with JOB_ID_IN_USE, LIMIT_EXCEEDED, UNAUTHENTICATED or NO_MANAGER. */
  async registerJob(context: JobShuffleContext): Promise<void> {
    this.#closed.signal.throwIfAborted()
    const { jobId } = context
    if (this.#jobs.has(jobId)) {
      throw new ShuffleError('INVALID_ARGUMENT', `job ${jobId} is registered here already`, {
        fields: { jobId },
      })
    }
    const job = new MasterJob(context)
    this.#jobs.set(jobId, job)
    try {
      await this.#registerFirst(job)
    } catch (error) {
      this.#forget(job)
      throw error
    }
    this.#wake?.()
  }

  /**
   * The job has ended: releases everything of it. While the manager is away it can't be told; it
   * releases a job that nobody claims by itself.
   */
  async unregisterJob(jobId: JobId): Promise<void> {
    const job = this.#jobs.get(jobId)
    if (job === undefined) return
    await this.#end(job, async () => {
      // Never registered: what the manager has by this name is another client's.
      if (job.jobEpoch === undefined) return
      const query = { jobEpoch: String(job.jobEpoch) }
      await this.#quietly(job, () =>
        this.#client.call(managerApi.deleteJob, { params: { jobId }, query, body: undefined }),
      )
    })
  }

  /**
   * Keeps the job's data for `keepMs`, or the manager's job time-out, although this process goes;
   * forgets the job here.
   */
  async detachJob(jobId: JobId, keepMs?: number): Promise<void> {
    const job = this.#jobs.get(jobId)
    if (job === undefined) return
    await this.#end(job, async () => {
      // Else what was released just before would be kept too.
      await sendReleases(this.#client, job, {})
      const body = { jobEpoch: job.jobEpoch ?? 0, ...(keepMs === undefined ? {} : { keepMs }) }
      await this.#client.call(managerApi.detachJob, { params: { jobId }, query: {}, body })
    })
  }

  /**
   * Chooses a worker for the output of one producer attempt. Rejects with NO_WORKER, LIMIT_EXCEEDED,
   * STALE_ALLOCATION or NO_MANAGER once it has been tried for long enough.
   */
  registerPartitionWithProducer(
    jobId: JobId,
    partition: PartitionDescriptor,
    producer: ProducerDescriptor,
  ): Promise<ShuffleDescriptor> {
    const job = this.#jobs.get(jobId)
    if (job === undefined) {
      const error = new ShuffleError('JOB_UNKNOWN', `register job ${jobId} before its partitions`)
      return Promise.reject(error)
    }
    const { dataSetId, partitionIndex, expectedBytes } = partition
    const facts: DataSetFacts = {
      dataSetId,
      totalPartitions: partition.totalPartitions,
      subpartitionCount: partition.subpartitionCount,
      isBroadcast: partition.isBroadcast,
      ...(expectedBytes === undefined ? {} : { expectedBytes }),
    }
    const key = { jobId, dataSetId, partitionIndex, attemptId: producer.attemptId }
    job.beginAllocating(key)
    return new Promise((resolve, reject) => {
      this.#batches.add(job, facts, { key, host: producer.host, resolve, reject })
    })
  }

  /** Asynchronous, idempotent, never throws. */
  releasePartitionExternally(descriptor: ShuffleDescriptor): void {
    this.#release(this.#jobs.get(descriptor.key.jobId), [descriptor.key])
  }

  get #isClosed(): boolean {
    return this.#closed.signal.aborted
  }

  get #allocateForMs(): number {
    return this.#options.allocateForMs ?? allocateForDefaultMs
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#jobs.size === 0) await this.#untilWoken()
      else await this.#roundOrPause()
    }
  }

  async #roundOrPause(): Promise<void> {
    try {
      await this.#round(this.#closed.signal)
    } catch (error) {
      if (this.#isClosed) return
      this.#logger.debug({ error: String(error) }, 'heartbeat to the shuffle manager failed')
      await this.#pause()
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    for (const job of [...this.#jobs.values()]) {
      if (job.reportedTo !== this.#client.managerEpoch) await this.#registerOrFail(job)
    }
    this.#background(this.#flushReleases({}))
    const jobs = [...this.#jobs.values()].filter((job) => job.reportedTo !== undefined)
    const beats = beatsOf(jobs)
    const unknownCommands = jobs.flatMap((job) => job.takeUnknownCommands())
    const waitMs = jobs.some((job) => job.hasChanges) ? 0 : this.#heartbeatIntervalMs
    const answer = await this.#client.call(
      managerApi.heartbeatJobs,
      {
        params: {},
        query: {},
        body: {
          clientId: this.#clientId,
          waitMs,
          jobs: beats,
          ...(unknownCommands.length === 0 ? {} : { unknownCommands }),
        },
      },
      { signal, waitMs, retryForMs: 0 },
    )
    jobs.forEach((job, index) => {
      const beat = beats[index]
      const one = answer.jobs[index]
      if (beat === undefined || one?.jobId !== job.jobId || job.isEnded) return
      if (one.status === 'ok') job.beatTaken(beat)
      this.#takeAnswer(job, one)
    })
  }

  #takeAnswer(job: MasterJob, answer: JobBeatAnswer): void {
    switch (answer.status) {
      case 'unknown':
      case 'resync':
        job.reportedTo = undefined
        return
      case 'superseded':
        this.#fail(job, 'SUPERSEDED', `another client took job ${job.jobId} over`)
        return
      case 'ok': {
        const lost = job.take(answer.commands)
        if (lost.length > 0) {
          this.#callBack(job, () => {
            job.context.onPartitionsLost(lost)
          })
        }
      }
    }
  }

  /** In the loop: a refusal that no retry mends fails the job, not the loop. */
  async #registerOrFail(job: MasterJob): Promise<void> {
    try {
      await this.#register(job)
    } catch (error) {
      if (job.isEnded) return
      if (!isShuffleError(error) || error.isRetryable || error.code === 'CANCELLED') throw error
      this.#fail(job, error.code, error.message)
    }
  }

  /** A manager that restarts between registration and list has to be told again. */
  async #registerFirst(job: MasterJob): Promise<void> {
    const deadlineMs = this.#clock.nowMs() + this.#allocateForMs
    for (;;) {
      try {
        await this.#register(job)
        return
      } catch (error) {
        const isRetried = isShuffleError(error, 'JOB_UNKNOWN', 'RESYNC')
        if (!isRetried || this.#clock.nowMs() + pauseMs > deadlineMs) throw error
        await sleep(this.#clock, pauseMs, this.#closed.signal)
      }
    }
  }

  /** Forgets the job; `tell` must not overtake its registration, or that would begin the job again. */
  async #end(job: MasterJob, tell: () => Promise<void>): Promise<void> {
    const { jobId } = job
    this.#forget(job)
    const ended = Promise.allSettled([this.#registrations.get(job)]).then(tell)
    this.#ends.set(jobId, ended)
    try {
      await ended
    } finally {
      if (this.#ends.get(jobId) === ended) this.#ends.delete(jobId)
    }
  }

  /** Registers and sends the list; one at a time for a job. CANCELLED once the job has ended here. */
  #register(job: MasterJob): Promise<void> {
    const running = this.#registrations.get(job)
    if (running !== undefined) return running
    if (job.isEnded) return Promise.reject(endedHere(job))
    const registration = this.#registerAfterEnd(job).then(
      ({ heartbeatIntervalMs }) => {
        this.#heartbeatIntervalMs = this.#options.heartbeatIntervalMs ?? heartbeatIntervalMs
        this.#registrations.delete(job)
      },
      (error: unknown) => {
        this.#registrations.delete(job)
        throw error
      },
    )
    this.#registrations.set(job, registration)
    return registration
  }

  async #registerAfterEnd(job: MasterJob): Promise<{ readonly heartbeatIntervalMs: number }> {
    const { signal } = this.#closed
    const earlier = this.#ends.get(job.jobId)
    if (earlier !== undefined) {
      await settledOrAborted(earlier, signal)
      if (job.isEnded) throw endedHere(job)
    }
    return await registerAndReport(this.#client, job, {
      clientId: this.#clientId,
      report: `report-${randomHex(this.#options.world.random, 8)}`,
      signal,
    })
  }

  async #allocate(batch: AllocationBatch): Promise<void> {
    const { job, requests } = batch
    try {
      const descriptors = await this.#allocateWithRetries(batch)
      requests.forEach((request, index) => {
        const descriptor = descriptors[index]
        if (descriptor === undefined) return
        job.add(descriptor, batch.facts)
        request.resolve(descriptor)
      })
    } catch (error) {
      // The manager may have allocated what it could not tell us.
      this.#release(
        job,
        requests.map((request) => request.key),
      )
      for (const request of requests) request.reject(error)
    } finally {
      for (const request of requests) job.endAllocating(request.key)
    }
  }

  async #allocateWithRetries(batch: AllocationBatch): Promise<ShuffleDescriptor[]> {
    const { signal } = this.#closed
    const deadlineMs = this.#clock.nowMs() + (this.#options.allocateForMs ?? allocateForDefaultMs)
    for (;;) {
      if (batch.job.isEnded) throw endedHere(batch.job)
      try {
        return await allocateBatch(this.#client, batch, { ...this.#options, signal })
      } catch (error) {
        const isRetried = isShuffleError(error, 'JOB_UNKNOWN', 'NO_WORKER', 'NO_MANAGER', 'BUSY')
        if (!isRetried || this.#clock.nowMs() + pauseMs > deadlineMs) throw error
        await sleep(this.#clock, pauseMs, signal)
        if (error.code === 'JOB_UNKNOWN') await this.#register(batch.job)
      }
    }
  }

  #release(job: MasterJob | undefined, keys: readonly PartitionKey[]): void {
    if (job === undefined || job.isEnded) return
    for (const key of keys) job.release(key)
    if (this.#isReleasing || this.#closed.signal.aborted) return
    this.#isReleasing = true
    this.#clock.setImmediate(() => {
      this.#isReleasing = false
      this.#background(this.#flushReleases({}))
    })
  }

  /** What fails stays to be released with the next heartbeat. */
  async #flushReleases(options: { readonly retryForMs?: number }): Promise<void> {
    for (const job of [...this.#jobs.values()]) {
      const reason = await sendReleases(this.#client, job, options)
      if (reason === undefined) continue
      this.#logger.debug({ jobId: job.jobId, reason }, 'release is put off')
      return
    }
  }

  async #quietly(job: MasterJob, call: () => Promise<unknown>): Promise<void> {
    try {
      await call()
    } catch (error) {
      if (!isShuffleError(error, 'NO_MANAGER', 'JOB_UNKNOWN', 'SUPERSEDED')) throw error
      this.#logger.warn(
        { jobId: job.jobId, code: error.code },
        'the manager could not be told that the job has ended',
      )
    }
  }

  #fail(job: MasterJob, code: ErrorCode, message: string): void {
    this.#forget(job)
    this.#logger.warn({ jobId: job.jobId, code }, 'the job can not go on')
    this.#callBack(job, () => {
      job.context.onJobFailed({ code, message })
    })
  }

  #forget(job: MasterJob): void {
    job.isEnded = true
    // It may have been registered anew.
    if (this.#jobs.get(job.jobId) === job) this.#jobs.delete(job.jobId)
  }

  #callBack(job: MasterJob, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#logger.error({ jobId: job.jobId, error: String(error) }, "the runtime's callback threw")
    }
  }

  #background(work: Promise<void>): void {
    const tracked = work.then(
      () => {
        this.#underWay.delete(tracked)
      },
      (error: unknown) => {
        this.#underWay.delete(tracked)
        this.#logger.error({ error: String(error) }, 'work of the shuffle master failed')
      },
    )
    this.#underWay.add(tracked)
  }

  async #untilWoken(): Promise<void> {
    await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = undefined
  }

  async #pause(): Promise<void> {
    try {
      await sleep(this.#clock, pauseMs, this.#closed.signal)
    } catch {
      // Closed meanwhile: the loop sees it.
    }
  }
}

/** Throws the reason of the signal when it aborts. */
async function settledOrAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const onAbort = () => {
      resolve()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    void Promise.allSettled([promise]).then(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
  })
  signal.throwIfAborted()
}

function endedHere({ jobId }: MasterJob): ShuffleError {
  return new ShuffleError('CANCELLED', `job ${jobId} is no longer registered here`)
}
