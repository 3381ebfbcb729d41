// Runs one job: starts its tasks in task processes, embeds the ShuffleMaster, and produces again what
// is lost. Nothing is restarted that needs not be: a lost partition restarts its producer and the
// consumers that are at work; consumers that have finished stay finished.

import {
  isShuffleError,
  parseAttemptId,
  parseJobId,
  ShuffleError,
  type ErrorFields,
  type JobId,
  type Logger,
  type LostPartition,
  type ShuffleDescriptor,
  type ShuffleMaster,
  type World,
} from '../client/index.ts'
import type { JobPlan } from './job-plan.ts'
import { attemptIdOf, fieldsOfAttempt, JobStage } from './job-stages.ts'
import type { JobResult, JobSummary, StageSummary } from './job-result.ts'
import { JobTracker, type AttemptRef, type TaskRef } from './job-tracker.ts'
import { describeTaskError, errorOfTask, kindOfTaskError, type TaskError } from './task-error.ts'
import type { ClusterSettings } from './task-messages.ts'
import {
  TaskProcessPool,
  type FinishedMessage,
  type PoolLimits,
  type Slot,
} from './task-process-pool.ts'
import type { StartTaskProcess, TaskProcess } from './task-process.ts'

export interface JobMasterOptions {
  readonly world: Pick<World, 'clock' | 'random'>
  readonly logger: Logger
  /** Started and closed by the caller; this job is registered and unregistered here. */
  readonly shuffleMaster: ShuffleMaster
  readonly startTaskProcess: StartTaskProcess
  readonly cluster: ClusterSettings
  readonly processCount: number
  readonly slotsPerProcess: number
  readonly spillDirectory: string
  /** What task processes remove when this process is gone. */
  readonly removeWhenOrphaned?: readonly string[]
  readonly limits?: Partial<JobLimits & PoolLimits>
}

export interface JobLimits {
  /**
   * Attempts of one task, whatever ended them but a loss among its inputs: enough for several losses in
   * a row. That loss counts for the task that produces again.
   */
  readonly attemptsMax: number
  /** Back-off before another attempt after a failure: doubled from the first to the last. */
  readonly retryDelayMinMs: number
  readonly retryDelayMaxMs: number
  /** How long a task waits for a place for its output while there is no manager or no worker. */
  readonly allocationTimeoutMs: number
}

const defaultLimits: JobLimits = {
  attemptsMax: 10,
  retryDelayMinMs: 100,
  retryDelayMaxMs: 5000,
  allocationTimeoutMs: 120_000,
}

interface RunningTask {
  readonly attempt: AttemptRef
  readonly slot: Slot
  descriptor: ShuffleDescriptor | undefined
  isCancelled: boolean
}

export class JobMaster {
  readonly #options: JobMasterOptions
  readonly #limits: JobLimits
  readonly #plan: JobPlan
  readonly #tracker: JobTracker
  readonly #stages: readonly JobStage[]
  readonly #pool: TaskProcessPool
  readonly #runs = new Map<number, RunningTask>()
  readonly #startedMs: number
  readonly jobId: JobId
  #nextRun = 1
  #waitsFor: ShuffleError | undefined
  #settle: { resolve: () => void; reject: (error: Error) => void } | undefined

  constructor(options: JobMasterOptions, plan: JobPlan) {
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#plan = plan
    this.jobId = parseJobId(`${plan.name}-${options.world.random.bytes(8).toString('hex')}`)
    this.#startedMs = options.world.clock.nowMs()
    this.#tracker = new JobTracker(plan.stages.map((stage) => stage.taskCount))
    this.#stages = plan.stages.map((stage, index) => new JobStage(stage, index))
    this.#pool = this.#createPool()
  }

  /** The processes that run at this moment. */
  get taskProcesses(): readonly TaskProcess[] {
    return this.#pool.processes
  }

  /** Runs the job to its end; once. Rejects with the error that no attempt could mend. */
  async run(signal?: AbortSignal): Promise<JobResult> {
    const ended = new Promise<void>((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    // Handled also where the job ends before anybody waits for it.
    ended.catch(() => undefined)
    const onAbort = () => {
      this.#fail(new ShuffleError('CANCELLED', 'the job was cancelled'))
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      signal?.throwIfAborted()
      await Promise.race([this.#register(), ended])
      this.#pool.start()
      this.#schedule()
      await ended
      return { summary: this.summary(), results: this.#stage(this.#stages.length - 1).results }
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.#settle = undefined
      await this.#pool.close()
      await this.#unregister()
    }
  }

  /** Why no place for output can be had just now; undefined when it can, or nobody has asked. */
  get waitsFor(): ShuffleError | undefined {
    return this.#waitsFor
  }

  /** How far it is; also while it runs. */
  summary(): JobSummary {
    const stages = this.#stages.map((stage, index): StageSummary => ({
      name: stage.plan.name,
      ...this.#tracker.counts(index),
      progressBytes: this.#progressOf(index),
      committed: stage.committed,
    }))
    const attemptsOf = (of: readonly StageSummary[]) =>
      of.reduce((sum, stage) => sum + stage.attempts, 0)
    return {
      jobId: this.jobId,
      durationMs: this.#options.world.clock.nowMs() - this.#startedMs,
      stages,
      producerAttempts: attemptsOf(stages.slice(0, -1)),
      consumerAttempts: attemptsOf(stages.slice(1)),
      processRestarts: this.#pool.restarts,
      taskProcesses: [...this.#pool.peakMemoryBytes].map(([pid, peakMemoryBytes]) => ({
        pid,
        peakMemoryBytes,
      })),
    }
  }

  #createPool(): TaskProcessPool {
    const options = this.#options
    return new TaskProcessPool({
      clock: options.world.clock,
      startTaskProcess: options.startTaskProcess,
      processCount: options.processCount,
      slotsPerProcess: options.slotsPerProcess,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      setUp: {
        kind: 'set-up',
        cluster: options.cluster,
        tasksModule: this.#plan.tasksModule,
        memory: this.#plan.memory,
        recordBytesMax: this.#plan.recordBytesMax,
        spillDirectory: options.spillDirectory,
        removeWhenOrphaned: options.removeWhenOrphaned ?? [],
      },
      handler: {
        onFinished: (message) => {
          this.#onFinished(message)
        },
        onFailed: (run, error) => {
          this.#onFailed(run, error)
        },
        onSlot: () => {
          this.#schedule()
        },
        onBroken: (error) => {
          this.#fail(errorOfTask(error))
        },
      },
    })
  }

  async #register(): Promise<void> {
    await this.#options.shuffleMaster.registerJob({
      jobId: this.jobId,
      onPartitionsLost: (lost) => {
        for (const partition of lost) this.#onLost(partition)
        this.#schedule()
      },
      onJobFailed: (error) => {
        this.#fail(new ShuffleError(error.code, error.message, { fields: { jobId: this.jobId } }))
      },
    })
  }

  /** The manager may be away; then it releases the job when it has been silent for long enough. */
  async #unregister(): Promise<void> {
    try {
      await this.#options.shuffleMaster.unregisterJob(this.jobId)
    } catch (error) {
      this.#options.logger.warn(
        { jobId: this.jobId, error: String(error) },
        'the job could not be unregistered',
      )
    }
  }

  /** Starts what can be started. */
  #schedule(): void {
    while (this.#settle !== undefined) {
      const task = this.#tracker.nextRunnable()
      if (task === undefined) return
      const slot = this.#pool.takeSlot(this.#nextRun)
      if (slot === undefined) return
      this.#nextRun += 1
      this.#startTask(task, slot)
    }
  }

  #startTask(task: TaskRef, slot: Slot): void {
    const attempt = this.#tracker.start(task)
    const cancelled = this.#stage(task.stage).cancelledAttempts(task.index)
    if (attempt.attempt - cancelled > this.#limits.attemptsMax) {
      slot.giveBack()
      this.#fail(this.#tooManyAttempts(task))
      return
    }
    const running: RunningTask = { attempt, slot, descriptor: undefined, isCancelled: false }
    this.#runs.set(slot.run, running)
    this.#allocate(attempt).then(
      (descriptor) => {
        this.#startAllocated(running, descriptor)
      },
      (error: unknown) => {
        if (this.#runs.has(slot.run)) slot.giveBack()
        this.#onFailed(slot.run, describeTaskError(error))
      },
    )
  }

  /**
   * A place for the attempt's output; the last stage has none. Waiting for a manager that restarts,
   * or for workers, is no failure of the attempt.
   */
  async #allocate(attempt: AttemptRef): Promise<ShuffleDescriptor | undefined> {
    const { clock } = this.#options.world
    const deadlineMs = clock.nowMs() + this.#limits.allocationTimeoutMs
    for (let tries = 1; ; tries++) {
      try {
        const descriptor = await this.#askForPlace(attempt)
        this.#waitsFor = undefined
        return descriptor
      } catch (error) {
        const isLate = clock.nowMs() >= deadlineMs || this.#settle === undefined
        if (isLate || !isShuffleError(error, 'NO_MANAGER', 'NO_WORKER', 'BUSY')) throw error
        this.#waitsFor = error
        await this.#pause(tries)
      }
    }
  }

  async #askForPlace({
    stage,
    index,
    attempt,
  }: AttemptRef): Promise<ShuffleDescriptor | undefined> {
    const next = this.#stages[stage + 1]
    const { dataSetId, plan } = this.#stage(stage)
    if (next === undefined) return undefined
    return await this.#options.shuffleMaster.registerPartitionWithProducer(
      this.jobId,
      {
        dataSetId,
        partitionIndex: index,
        totalPartitions: plan.taskCount,
        subpartitionCount: next.plan.taskCount,
        isBroadcast: false,
      },
      { attemptId: parseAttemptId(attemptIdOf(attempt)) },
    )
  }

  #startAllocated(running: RunningTask, descriptor: ShuffleDescriptor | undefined): void {
    const { slot, attempt } = running
    const hasProcess = this.#runs.has(slot.run)
    if (!hasProcess || running.isCancelled) {
      // Its process ended, or a loss cancelled it, while the manager answered.
      this.#release(descriptor)
      if (hasProcess) this.#dropUnstarted(running)
      return
    }
    running.descriptor = descriptor
    const { stage, index } = attempt
    const { plan } = this.#stage(stage)
    const inputStage = stage === 0 ? undefined : stage - 1
    if (inputStage !== undefined) this.#tellInputs(slot, inputStage)
    slot.start({
      kind: 'start',
      run: slot.run,
      task: plan.task,
      stageName: plan.name,
      taskIndex: index,
      attempt: attempt.attempt,
      input: plan.inputOf(index, inputStage === undefined ? [] : this.#stage(inputStage).results),
      output: descriptor,
      inputStage,
    })
  }

  #dropUnstarted({ slot, attempt }: RunningTask): void {
    this.#runs.delete(slot.run)
    slot.giveBack()
    this.#stage(attempt.stage).noteCancelled(attempt.index)
    this.#tracker.giveUp(attempt)
    this.#schedule()
  }

  #tellInputs(slot: Slot, stage: number): void {
    const { descriptors, version } = this.#stage(stage)
    slot.setInputs(version, { kind: 'inputs', stage, descriptors })
  }

  #onFinished(message: FinishedMessage): void {
    const running = this.#runs.get(message.run)
    if (running === undefined) return
    this.#runs.delete(message.run)
    const { attempt, descriptor } = running
    if (this.#tracker.finish(attempt)) {
      const { result, committed, progress } = message
      const finished = { attempt: attempt.attempt, result, descriptor, committed, progress }
      this.#stage(attempt.stage).setFinished(attempt.index, finished)
    } else this.#release(descriptor)
    if (this.#tracker.isFinished) this.#settle?.resolve()
    else this.#schedule()
  }

  #onFailed(run: number, error: TaskError): void {
    const running = this.#runs.get(run)
    if (running === undefined) return
    this.#runs.delete(run)
    const { attempt, descriptor, isCancelled } = running
    this.#release(descriptor)
    const stage = this.#stage(attempt.stage)
    const kind = isCancelled ? 'cancelled' : kindOfTaskError(error)
    if (isCancelled) stage.noteCancelled(attempt.index)
    else stage.noteError(attempt.index, error)
    this.#logFailure(attempt, error, kind)
    switch (kind) {
      case 'fail':
        this.#fail(errorOfTask(error, this.#fieldsOf(attempt)))
        return
      case 'try-again':
        void this.#giveUpLater(attempt)
        return
      case 'produce-again':
        this.#loseNamed(error)
        break
      case 'cancelled':
        break
    }
    this.#tracker.giveUp(attempt)
    this.#schedule()
  }

  async #giveUpLater(attempt: AttemptRef): Promise<void> {
    await this.#pause(attempt.attempt)
    this.#tracker.giveUp(attempt)
    this.#schedule()
  }

  /** Longer from one time to the next. */
  #pause(tries: number): Promise<void> {
    const { retryDelayMinMs, retryDelayMaxMs } = this.#limits
    const delayMs = Math.min(retryDelayMaxMs, retryDelayMinMs * 2 ** (tries - 1))
    return new Promise((resolve) => {
      this.#options.world.clock.setTimer(delayMs, resolve)
    })
  }

  /** The partition that a consumer's error names. */
  #loseNamed({ fields, code }: TaskError): void {
    const { dataSetId, partitionIndex, attemptId } = fields
    this.#lose(String(dataSetId), Number(partitionIndex), String(attemptId), code ?? 'unknown')
  }

  #onLost({ key, cause }: LostPartition): void {
    this.#lose(key.dataSetId, key.partitionIndex, key.attemptId, cause)
  }

  #lose(dataSetId: string, index: number, attemptId: string, cause: string): void {
    const stage = this.#stages.findIndex((candidate) => candidate.dataSetId === dataSetId)
    const task = this.#stages[stage]?.finishedTask(index)
    if (task === undefined || attemptIdOf(task.attempt) !== attemptId) return
    if (!this.#tracker.lose({ stage, index, attempt: task.attempt })) return
    this.#options.logger.warn(
      { jobId: this.jobId, dataSetId, partitionIndex: index, attemptId, cause },
      'a partition was lost and is produced again',
    )
    this.#stage(stage).setFinished(index, undefined)
    this.#release(task.descriptor)
    for (const [run, running] of this.#runs) {
      if (running.attempt.stage !== stage + 1) continue
      running.isCancelled = true
      running.slot.cancel({ kind: 'cancel', run })
    }
  }

  #release(descriptor: ShuffleDescriptor | undefined): void {
    if (descriptor !== undefined) {
      this.#options.shuffleMaster.releasePartitionExternally(descriptor)
    }
  }

  #fail(error: Error): void {
    this.#settle?.reject(error)
  }

  #tooManyAttempts({ stage, index }: TaskRef): Error {
    const last = this.#stage(stage).lastError(index)
    const tried = `task ${String(index)} of stage ${this.#stage(stage).plan.name} failed ${String(this.#limits.attemptsMax)} times`
    if (last === undefined) return new Error(tried)
    return errorOfTask({ ...last, message: `${tried}; the last time: ${last.message}` })
  }

  #logFailure(attempt: AttemptRef, error: TaskError, kind: string): void {
    const { code, message, fields } = error
    const ids = this.#fieldsOf(attempt)
    this.#options.logger.warn({ ...ids, code, fields, error: message, kind }, 'an attempt failed')
  }

  #fieldsOf(attempt: AttemptRef): ErrorFields {
    return { jobId: this.jobId, ...fieldsOfAttempt(this.#stage(attempt.stage), attempt) }
  }

  #progressOf(stage: number): number {
    let sum = this.#stage(stage).progressBytes
    for (const [run, { attempt }] of this.#runs) {
      if (attempt.stage === stage) sum += this.#pool.progressOf(run)
    }
    return sum
  }

  #stage(stage: number): JobStage {
    const found = this.#stages[stage]
    if (found === undefined) throw new RangeError(`no stage ${String(stage)}`)
    return found
  }
}
