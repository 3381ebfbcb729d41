// One job of a simulation: its job master, which lives in a process of its own and can die, and its
// stages. Every task of a stage reads all partitions of the stage before, a range of subpartitions
// each, and writes one partition; the last stage only reads. The job does with an error what the error
// table says, until it is done.

import { setMaxListeners } from 'node:events'
import { sleep } from '../../client/common/clock.ts'
import { isShuffleError, type ErrorCode } from '../../client/common/errors.ts'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  partitionKeyText,
  type JobId,
  type PartitionKey,
} from '../../client/common/ids.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { shuffleServiceFactory } from '../../client/shuffle-service-factory.ts'
import type { ShuffleMaster } from '../../client/spi.ts'
import { deferred } from '../support/deferred.ts'
import type { VirtualRandom } from '../support/virtual-random.ts'
import { masterContextOf, type Cluster } from './cluster.ts'
import type { JobPlan, StagePlan } from './plan.ts'
import { SimProcess } from './process.ts'
import { type Allocated, TaskAttempt, type TaskInput } from './task-attempt.ts'
import type { AttemptTruth, Truth } from './truth.ts'

export interface JobContext {
  readonly cluster: Cluster
  readonly plan: JobPlan
  readonly random: VirtualRandom
  readonly truth: Truth
  readonly note: (text: string) => void
  /** Every error that reaches the runtime; it says whether it may come at all. */
  readonly onError: (error: unknown, where: ErrorPlace) => void
  readonly onFinding: (finding: string) => void
}

export interface ErrorPlace {
  readonly during: 'register' | 'allocate' | 'attempt' | 'input'
  readonly job: string
  /** Of an input. */
  readonly attempt?: AttemptTruth | undefined
}

/** A partition as its consumers see it. */
export interface Slot {
  readonly stageIndex: number
  readonly index: number
  attempts: number
  /** The attempt to read: allocated where the consumers are eager, else committed. */
  current: Allocated | undefined
  isCommitted: boolean
  isProducing: boolean
}

/** Thrown into everything of a life of a job master that has ended. */
class LifeEnded extends Error {}

/** Thrown where another attempt of an input is waited for when all tasks are done: none will come. */
class JobOver extends Error {}

const backOffMs = 100
const attemptsMax = 500

export class SimJob {
  readonly plan: JobPlan
  readonly jobId: JobId
  readonly #context: JobContext
  readonly #random: VirtualRandom
  readonly #replaced: JobLife[] = []
  #life: JobLife | undefined
  #lives = 0
  isDone = false

  constructor(context: JobContext) {
    this.#context = context
    this.plan = context.plan
    this.#random = context.random
    this.jobId = parseJobId(context.plan.name)
  }

  get masterHost(): string {
    return `master-${this.plan.name}`
  }

  get process(): SimProcess | undefined {
    return this.#life?.process
  }

  /** Of all its masters, replaced ones too. */
  get processes(): readonly SimProcess[] {
    return [...this.#replaced, ...(this.#life === undefined ? [] : [this.#life])].map(
      ({ process }) => process,
    )
  }

  /** Replaced masters that live and have not been told. */
  get untold(): readonly string[] {
    return this.#replaced
      .filter(({ process, isSuperseded }) => process.isAlive && !isSuperseded)
      .map(({ number }) => `life ${String(number)} of ${this.plan.name}`)
  }

  /** Another master takes the job over although this one lives; false when there is none. */
  replaceMaster(): boolean {
    const life = this.#life
    if (life === undefined || this.isDone || !life.process.isAlive || !life.isRegistered) {
      return false
    }
    this.#context.note(`replace the master of ${this.plan.name}`)
    this.#replaced.push(life)
    this.#life = undefined
    life.end()
    return true
  }

  /** Keys that the job counts on. */
  /** None once its job master has died: nobody claims them any more. */
  get heldKeys(): readonly string[] {
    return this.isAbandoned ? [] : (this.#life?.heldKeys ?? [])
  }

  get isAbandoned(): boolean {
    return this.#life?.process.isAlive === false
  }

  describe(): string {
    return `${this.plan.name} ${this.isDone ? 'done' : (this.#life?.describe() ?? 'not begun')}`
  }

  /** Until all its tasks have succeeded, over as many lives of its master as it takes. */
  async run(): Promise<void> {
    const { clock } = this.#context.cluster.context.virtual
    await sleep(clock, this.plan.startMs)
    while (!this.isDone) {
      this.#lives += 1
      const life = new JobLife(this.#context, this, this.#lives, this.#random)
      this.#life = life
      try {
        await life.run()
        this.isDone = true
      } catch (error) {
        if (!(error instanceof LifeEnded)) throw error
        this.#context.note(`${this.plan.name}: life ${String(this.#lives)} ended`)
        await sleep(clock, 200)
      }
    }
  }

  /** Releases everything. */
  async unregister(): Promise<void> {
    if (!this.isAbandoned) await this.#life?.unregister()
  }

  async close(): Promise<void> {
    for (const life of this.#replaced) if (life.process.isAlive) await life.close()
    if (!this.isAbandoned) await this.#life?.close()
  }
}

/** From the start of a job master's process to its end. */
class JobLife {
  readonly process: SimProcess
  readonly number: number
  readonly #context: JobContext
  readonly #job: SimJob
  readonly #random: VirtualRandom
  readonly #master: ShuffleMaster
  readonly #slots: readonly (readonly Slot[])[]
  readonly #held = new Map<string, ShuffleDescriptor>()
  readonly #abort = new AbortController()
  readonly #ended: Promise<never>
  readonly #background = new Set<Promise<void>>()
  readonly #tasksLeft: number[]
  readonly #doing = new Set<string>()
  #slotChange = deferred<undefined>()
  #isOver = false
  isRegistered = false
  /** Told that another client has the job. */
  isSuperseded = false
  #endLife: () => void = () => undefined

  constructor(context: JobContext, job: SimJob, number: number, random: VirtualRandom) {
    const { cluster, plan } = context
    this.#context = context
    this.#job = job
    this.number = number
    this.#random = random
    this.process = new SimProcess(cluster.context.virtual, job.masterHost, cluster.context.tap)
    this.#master = shuffleServiceFactory.createShuffleMaster(
      masterContextOf(cluster.context, this.process),
    )
    this.#slots = plan.stages.map((stage, stageIndex) =>
      stage.outputs === undefined
        ? []
        : stage.outputs.map((_, index) => ({
            stageIndex,
            index,
            attempts: 0,
            current: undefined,
            isCommitted: false,
            isProducing: false,
          })),
    )
    this.#tasksLeft = plan.stages.map((stage) => stage.taskCount)
    this.#ended = new Promise((_resolve, reject) => {
      this.#endLife = () => {
        this.#abort.abort(new LifeEnded())
        reject(new LifeEnded())
      }
    })
    this.#ended.catch(() => undefined)
    setMaxListeners(0, this.#abort.signal)
    void this.process.ended.then(() => {
      this.#endLife()
    })
  }

  get heldKeys(): readonly string[] {
    return [...this.#held.keys()]
  }

  /** Its tasks end; its process lives on. */
  end(): void {
    this.#endLife()
  }

  describe(): string {
    return `life ${String(this.number)}, tasks left ${this.#tasksLeft.join(',')}, doing ${[...this.#doing].join('; ')}`
  }

  async run(): Promise<void> {
    await this.#register()
    const stages = this.#context.plan.stages.map((stage, index) => this.#runStage(stage, index))
    await this.#orEnd(Promise.all(stages))
    this.#isOver = true
    this.#noteSlotChange()
    await this.#orEnd(Promise.all(this.#background))
  }

  async unregister(): Promise<void> {
    this.#held.clear()
    await this.#master.unregisterJob(this.#job.jobId)
  }

  async close(): Promise<void> {
    await this.#master.close()
  }

  async #register(): Promise<void> {
    const { jobId } = this.#job
    await this.#master.start()
    for (;;) {
      try {
        await this.#orEnd(
          this.#master.registerJob({
            jobId,
            takeOver: this.number > 1,
            onPartitionsLost: (lost) => {
              for (const { key } of lost) this.#onLost(key)
            },
            onJobFailed: ({ code, message }) => {
              if (code === 'SUPERSEDED') this.isSuperseded = true
              this.#context.onError(codeOnly(code, message), this.#place('register'))
              this.#endLife()
            },
          }),
        )
        this.isRegistered = true
        return
      } catch (error) {
        if (error instanceof LifeEnded) throw error
        this.#context.onError(error, this.#place('register'))
        await this.#pause(backOffMs)
      }
    }
  }

  async #runStage(stage: StagePlan, stageIndex: number): Promise<void> {
    const upstream = this.#slots[stageIndex - 1] ?? []
    const isThere = (slot: Slot) =>
      slot.current !== undefined && (stage.isEager || slot.isCommitted)
    while (!upstream.every(isThere)) await this.#orEnd(this.#slotChange.promise)
    await Promise.all(
      Array.from({ length: stage.taskCount }, async (_, index) => {
        const slot = this.#slots[stageIndex]?.[index]
        if (slot !== undefined) await this.#produce(slot)
        else await this.#consume(stageIndex, index)
        this.#tasksLeft[stageIndex] = (this.#tasksLeft[stageIndex] ?? 0) - 1
      }),
    )
    this.#context.note(`${this.#context.plan.name}: stage ${String(stageIndex)} done`)
  }

  /** Until one attempt has committed. */
  async #produce(slot: Slot): Promise<void> {
    slot.isProducing = true
    slot.isCommitted = false
    const { plan } = this.#context
    // Once all tasks are done nobody needs it any more.
    const isOpen = () => !slot.isCommitted && !this.#isOver
    while (isOpen()) {
      const twins = this.#random.chance(plan.twinChance) ? 2 : 1
      const race = new AbortController()
      await this.#orEnd(
        Promise.all(Array.from({ length: twins }, () => this.#produceOnce(slot, race))),
      )
      if (isOpen()) await this.#pause(backOffMs)
    }
    slot.isProducing = false
    if (this.#random.chance(plan.earlyReleaseChance)) this.#releaseLater(slot)
    if (this.#random.chance(plan.zombieChance)) this.#inBackground(this.#zombie(slot))
  }

  async #produceOnce(slot: Slot, race: AbortController): Promise<void> {
    const { truth, onError, note } = this.#context
    const allocated = await this.#allocate(slot)
    if (allocated === undefined) return
    const { descriptor, attempt } = allocated
    const name = partitionKeyText(descriptor.key)
    // One of two twins is the one that eager consumers read.
    slot.current ??= allocated
    this.#noteSlotChange()
    const task = this.#taskAttempt(
      slot.stageIndex,
      slot.index,
      { descriptor, attempt },
      race.signal,
    )
    this.#doing.add(name)
    try {
      await task.run()
      attempt.state = 'committed'
      if (slot.isCommitted) throw new Error('its twin was faster')
      slot.isCommitted = true
      slot.current = allocated
      this.#noteSlotChange()
      truth.partitionsCommitted += 1
      race.abort(new Error('the twin has committed'))
      note(`committed ${name}`)
    } catch (error) {
      if (error instanceof LifeEnded || this.#abort.signal.aborted) throw new LifeEnded()
      if (attempt.state === 'writing') attempt.state = 'failed'
      const isTold =
        race.signal.aborted || task.isCancelled || task.isInputError || error instanceof JobOver
      if (!isTold) onError(error, this.#place('attempt'))
      note(`attempt ${name} failed: ${textOf(error)}`)
      if (slot.current === allocated) slot.current = undefined
      this.#release(descriptor, attempt)
    } finally {
      this.#doing.delete(name)
    }
  }

  async #consume(stageIndex: number, index: number): Promise<void> {
    const { onError, note } = this.#context
    for (let attempts = 0; ; attempts += 1) {
      const name = `consumer ${String(stageIndex)}/${String(index)} attempt ${String(attempts)}`
      if (attempts > attemptsMax) throw new Error(`${name}: too many attempts`)
      const task = this.#taskAttempt(stageIndex, index + attempts, undefined, undefined, index)
      this.#doing.add(name)
      try {
        await task.run()
        return
      } catch (error) {
        if (error instanceof LifeEnded || this.#abort.signal.aborted) throw new LifeEnded()
        if (!task.isCancelled && !task.isInputError) onError(error, this.#place('attempt'))
        note(`${this.#context.plan.name} ${name} failed: ${textOf(error)}`)
      } finally {
        this.#doing.delete(name)
      }
      await this.#pause(backOffMs)
    }
  }

  #taskAttempt(
    stageIndex: number,
    hostIndex: number,
    output: Allocated | undefined,
    signal: AbortSignal | undefined,
    taskIndex = hostIndex,
  ): TaskAttempt {
    const { cluster, plan, truth, onFinding } = this.#context
    const stage = plan.stages[stageIndex] as StagePlan
    const shift = output === undefined ? 0 : output.descriptor.key.attemptId.charCodeAt(8) || 0
    return new TaskAttempt({
      cluster,
      host: cluster.taskHosts[(hostIndex + shift) % cluster.taskHosts.length]!,
      truth,
      random: this.#random,
      stage,
      plan,
      output,
      inputs: this.#inputsOf(stageIndex, taskIndex),
      signals: signal === undefined ? [this.#abort.signal] : [this.#abort.signal, signal],
      replace: (slot, key, error) => this.#replace(slot, key, error),
      onFinding,
    })
  }

  #inputsOf(stageIndex: number, taskIndex: number): readonly TaskInput[] {
    const upstream = this.#slots[stageIndex - 1] ?? []
    const { plan } = this.#context
    const count = plan.stages[stageIndex - 1]?.subpartitionCount ?? 1
    const stage = plan.stages[stageIndex] as StagePlan
    const isWhole = this.#random.chance(plan.wholeRangeChance)
    const first = Math.floor((taskIndex * count) / stage.taskCount)
    const last = Math.max(first, Math.floor(((taskIndex + 1) * count) / stage.taskCount) - 1)
    return upstream.map((slot) => ({
      slot,
      first: isWhole ? 0 : first % count,
      last: isWhole ? count - 1 : Math.max(first % count, last % count),
      waitForCurrent: () => this.#currentOf(slot, stage.isEager),
    }))
  }

  async #currentOf(slot: Slot, isEager: boolean, failed?: PartitionKey): Promise<Allocated> {
    for (;;) {
      const { current } = slot
      const isThere = current !== undefined && (isEager || slot.isCommitted)
      if (this.#isOver && (!isThere || isOf(current, failed))) throw new JobOver()
      if (isThere) return current
      await this.#orEnd(this.#slotChange.promise)
    }
  }

  async #allocate(slot: Slot): Promise<Allocated | undefined> {
    const { plan, truth, onError } = this.#context
    const stage = plan.stages[slot.stageIndex] as StagePlan
    const shape = stage.outputs?.[slot.index]
    if (shape === undefined) throw new Error('a slot without an output')
    slot.attempts += 1
    if (slot.attempts > attemptsMax) throw new Error('too many attempts of a producer')
    const key: PartitionKey = {
      jobId: this.#job.jobId,
      dataSetId: parseDataSetId(`data-${String(slot.stageIndex)}`),
      partitionIndex: slot.index,
      attemptId: parseAttemptId(`attempt-${String(this.number)}.${String(slot.attempts)}`),
    }
    const attempt = truth.begin(key, stage.subpartitionCount, shape)
    try {
      const descriptor = await this.#orEnd(
        this.#master.registerPartitionWithProducer(
          this.#job.jobId,
          {
            dataSetId: key.dataSetId,
            partitionIndex: key.partitionIndex,
            totalPartitions: stage.taskCount,
            subpartitionCount: stage.subpartitionCount,
            isBroadcast: shape.broadcastShare === 1,
          },
          { attemptId: key.attemptId },
        ),
      )
      this.#held.set(partitionKeyText(key), descriptor)
      // Names that it had before are of the same machine.
      attempt.host = /^worker-\d+/.exec(descriptor.holders[0]?.host ?? '')?.[0]
      return { descriptor, attempt }
    } catch (error) {
      if (error instanceof LifeEnded) throw error
      onError(error, this.#place('allocate'))
      await this.#pause(backOffMs)
      return undefined
    }
  }

  /** An input failed: produces the partition again, if that has not happened already. */
  async #replace(slot: Slot, key: PartitionKey, error: unknown): Promise<Allocated> {
    this.#context.onError(error, {
      ...this.#place('input'),
      attempt: this.#context.truth.of(key),
    })
    this.#invalidate(slot, key)
    return this.#currentOf(slot, false, key)
  }

  #invalidate(slot: Slot, key: PartitionKey): void {
    const { current } = slot
    if (!isOf(current, key) || this.#isOver) return
    // An attempt that is still being written ends by itself.
    if (!slot.isCommitted) return
    slot.current = undefined
    slot.isCommitted = false
    this.#release(current.descriptor, current.attempt)
    this.#inBackground(this.#produce(slot))
  }

  #onLost(key: PartitionKey): void {
    this.#context.note(`lost ${partitionKeyText(key)}`)
    this.#held.delete(partitionKeyText(key))
    const attempt = this.#context.truth.of(key)
    if (attempt !== undefined) attempt.isReleased = true
    for (const slot of this.#slots.flat()) this.#invalidate(slot, key)
  }

  #release(descriptor: ShuffleDescriptor, attempt: AttemptTruth): void {
    attempt.isReleased = true
    this.#held.delete(partitionKeyText(descriptor.key))
    this.#master.releasePartitionExternally(descriptor)
  }

  /** As a runtime's failover does it: although it is being read. */
  #releaseLater(slot: Slot): void {
    const { current } = slot
    const delayMs = this.#random.between(0, 400)
    this.#inBackground(
      this.#pause(delayMs).then(() => {
        if (current !== undefined) this.#invalidate(slot, current.descriptor.key)
      }),
    )
  }

  /** A producer that opens its write after its release. */
  async #zombie(slot: Slot): Promise<void> {
    const allocated = await this.#allocate(slot)
    if (allocated === undefined) return
    this.#release(allocated.descriptor, allocated.attempt)
    await this.#pause(2 ** this.#random.between(0, 13))
    const task = this.#taskAttempt(slot.stageIndex, slot.index, allocated, undefined)
    const { key, holders } = allocated.descriptor
    const worker = this.#context.cluster.workers.find(
      (each) => each.isUp && each.running?.workerId === holders[0]?.workerId,
    )
    const before = worker?.starts
    const isTold = worker?.running?.store.lookup(key).state === 'released'
    try {
      await task.run({ withoutInputs: true })
      if (isTold && worker.starts === before) {
        this.#context.onFinding(`a write after its release was taken: ${partitionKeyText(key)}`)
      }
      this.#context.note(`zombie ${partitionKeyText(allocated.descriptor.key)} committed`)
    } catch (error) {
      if (error instanceof LifeEnded) throw error
      this.#context.note(`zombie failed: ${textOf(error)}`)
    }
  }

  #inBackground(work: Promise<void>): void {
    const tracked = work.then(
      () => {
        this.#background.delete(tracked)
      },
      (error: unknown) => {
        this.#background.delete(tracked)
        if (error instanceof LifeEnded || this.#abort.signal.aborted) return
        this.#context.onFinding(`a job's background work failed: ${textOf(error)}`)
      },
    )
    this.#background.add(tracked)
  }

  /** Somebody may wait for an attempt to read. */
  #noteSlotChange(): void {
    const told = this.#slotChange
    this.#slotChange = deferred()
    told.resolve(undefined)
  }

  #place(during: ErrorPlace['during']): ErrorPlace {
    return { during, job: this.#context.plan.name }
  }

  async #pause(delayMs: number): Promise<void> {
    await this.#orEnd(sleep(this.#context.cluster.context.virtual.clock, delayMs))
  }

  #orEnd<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#ended])
  }
}

function isOf(
  allocated: Allocated | undefined,
  key: PartitionKey | undefined,
): allocated is Allocated {
  if (allocated === undefined || key === undefined) return false
  return partitionKeyText(allocated.descriptor.key) === partitionKeyText(key)
}

function codeOnly(code: ErrorCode, message: string): Error {
  return Object.assign(new Error(message), { code })
}

export function textOf(error: unknown): string {
  if (isShuffleError(error)) return `${error.code} ${error.message}`
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
