// One attempt of one task, in the process of a task host: reads its inputs, writes its output, or both
// at once, and checks every record on the way.

import { sleep } from '../../client/common/clock.ts'
import { errorTable, isShuffleError } from '../../client/common/errors.ts'
import { partitionKeyText, type PartitionKey } from '../../client/common/ids.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import type { InputGate, ResultPartition, ShuffleEnvironment } from '../../client/spi.ts'
import type { VirtualRandom } from '../support/virtual-random.ts'
import type { Cluster, Member } from './cluster.ts'
import type { Emission } from './content.ts'
import type { Slot } from './job.ts'
import type { JobPlan, StagePlan } from './plan.ts'
import { InputCheck, WrongData, type AttemptTruth, type Truth } from './truth.ts'

export interface Allocated {
  readonly descriptor: ShuffleDescriptor
  readonly attempt: AttemptTruth
}

export interface TaskInput {
  readonly slot: Slot
  readonly first: number
  readonly last: number
  waitForCurrent(): Promise<Allocated>
}

export interface TaskContext {
  readonly cluster: Cluster
  readonly host: Member<ShuffleEnvironment>
  readonly truth: Truth
  readonly random: VirtualRandom
  readonly stage: StagePlan
  readonly plan: JobPlan
  readonly output: Allocated | undefined
  readonly inputs: readonly TaskInput[]
  /** Each ends the attempt. */
  readonly signals: readonly AbortSignal[]
  /** Answers another attempt of the partition, once there is one. */
  readonly replace: (slot: Slot, key: PartitionKey, error: unknown) => Promise<Allocated>
  readonly onFinding: (finding: string) => void
}

interface OpenInput {
  current: Allocated
  check: InputCheck
}

export class TaskAttempt {
  readonly #context: TaskContext
  readonly #cancel = new AbortController()
  #isCancelled = false
  #isInputError = false

  constructor(context: TaskContext) {
    this.#context = context
  }

  /** Whether the runtime itself has ended it: then any error will do. */
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Whether it failed by an error of an input, which was told already. */
  get isInputError(): boolean {
    return this.#isInputError
  }

  async run(options: { readonly withoutInputs?: boolean } = {}): Promise<void> {
    const { host, signals, cluster, random, stage } = this.#context
    const onAbort = () => {
      this.#stop()
    }
    for (const signal of signals) signal.addEventListener('abort', onAbort)
    try {
      this.#throwIfStopped()
      while (!host.isUp) await sleep(cluster.context.virtual.clock, 50)
      const environment = host.running as ShuffleEnvironment
      const died = host.process.ended.then(() => {
        this.#isCancelled = true
        throw new Error('the task host died')
      })
      died.catch(() => undefined)
      this.#planCancellation()
      await sleep(cluster.context.virtual.clock, random.between(0, stage.delayMaxMs))
      await Promise.race([this.#work(environment, options.withoutInputs === true), died])
    } catch (error) {
      if (error instanceof WrongData) this.#context.onFinding(`wrong data: ${error.message}`)
      throw error
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
      this.#cancel.abort(new Error('the attempt is over'))
    }
  }

  #stop(): void {
    this.#isCancelled = true
    this.#cancel.abort(new Error('the runtime cancels the attempt'))
  }

  #throwIfStopped(): void {
    if (this.#context.signals.some((signal) => signal.aborted)) {
      this.#isCancelled = true
      throw new Error('the runtime cancels the attempt')
    }
  }

  #planCancellation(): void {
    const { random, plan, cluster } = this.#context
    if (!random.chance(plan.cancelChance)) return
    cluster.context.virtual.clock.schedule(2 ** random.between(0, 9), () => {
      if (!this.#cancel.signal.aborted) this.#stop()
    })
  }

  async #work(environment: ShuffleEnvironment, withoutInputs: boolean): Promise<void> {
    const inputs = withoutInputs ? [] : await this.#openInputs()
    this.#throwIfStopped()
    const gate = inputs.length === 0 ? undefined : this.#createGate(environment, inputs)
    let partition: ResultPartition | undefined
    try {
      partition = this.#createPartition(environment)
      const { stage, output } = this.#context
      const emitter = partition === undefined ? undefined : this.#emit(partition)
      if (gate !== undefined) {
        const isInterleaved = stage.isInterleaved && emitter !== undefined
        await this.#read(gate, inputs, isInterleaved ? emitter : undefined)
      }
      if (partition === undefined || emitter === undefined) return
      for await (const _ of emitter) this.#throwIfStopped()
      if (output !== undefined) output.attempt.state = 'finishing'
      const committed = await partition.finish()
      this.#checkCommitted(committed)
    } catch (error) {
      partition?.abort(error)
      throw error
    } finally {
      await gate?.close()
    }
  }

  async #openInputs(): Promise<readonly OpenInput[]> {
    return Promise.all(
      this.#context.inputs.map(async (input) => {
        const current = await input.waitForCurrent()
        return { current, check: this.#checkOf(input, current) }
      }),
    )
  }

  #checkOf({ first, last }: TaskInput, current: Allocated): InputCheck {
    return new InputCheck(this.#context.truth, current.attempt, { first, last })
  }

  #createGate(environment: ShuffleEnvironment, inputs: readonly OpenInput[]): InputGate {
    const { stage } = this.#context
    const bufferSizeBytes = inputs[0]?.current.descriptor.bufferSizeBytes ?? 4096
    return environment.createInputGate({
      inputs: this.#context.inputs.map((input, index) => ({
        descriptor: inputs[index]!.current.descriptor,
        firstSubpartition: input.first,
        lastSubpartition: input.last,
        isPending: stage.isEager,
      })),
      memoryBytes: stage.gateMemoryBuffers * bufferSizeBytes,
      signal: this.#cancel.signal,
    })
  }

  #createPartition(environment: ShuffleEnvironment): ResultPartition | undefined {
    const { output, stage } = this.#context
    if (output === undefined) return undefined
    return environment.createResultPartition({
      descriptor: output.descriptor,
      memoryBytes: stage.partitionMemoryBuffers * output.descriptor.bufferSizeBytes,
      signal: this.#cancel.signal,
    })
  }

  async *#emit(partition: ResultPartition): AsyncGenerator<Emission, void, undefined> {
    const content = this.#context.output?.attempt.content
    for (const emission of content?.emissions ?? []) {
      const { subpartition, eventCode } = emission
      const bytes = content!.bytesOf(emission)
      const wait =
        eventCode === undefined
          ? subpartition === undefined
            ? partition.broadcastRecord(bytes)
            : partition.emitRecord(bytes, subpartition)
          : subpartition === undefined
            ? partition.broadcastEvent(eventCode, bytes)
            : partition.emitEvent(eventCode, bytes, subpartition)
      if (wait !== undefined) await wait
      await this.#maybePause()
      yield emission
    }
  }

  /** A task that does something else for a while, in the middle of what it does. */
  async #maybePause(): Promise<void> {
    const { stage, random, cluster } = this.#context
    if (!random.chance(1 / stage.pauseEvery)) return
    await sleep(cluster.context.virtual.clock, random.between(0, stage.pauseMaxMs))
    this.#throwIfStopped()
  }

  async #read(
    gate: InputGate,
    inputs: readonly OpenInput[],
    emitter: AsyncGenerator<Emission, void, undefined> | undefined,
  ): Promise<void> {
    for (;;) {
      let batch
      try {
        batch = await gate.nextBatch()
      } catch (error) {
        await this.#onInputError(gate, inputs, error)
        continue
      }
      if (batch === undefined) break
      try {
        const input = inputs[batch.origin.inputIndex]
        if (input === undefined) throw new Error('a batch of no input')
        input.check.take(batch)
        // While the output waits for the worker this input grants nothing.
        if (emitter !== undefined) await emitter.next()
        await this.#maybePause()
      } finally {
        batch.recycle()
      }
    }
    for (const input of inputs) input.check.finish()
  }

  /** Goes on with another attempt of the input where that is possible; else the task fails. */
  async #onInputError(
    gate: InputGate,
    inputs: readonly OpenInput[],
    error: unknown,
  ): Promise<void> {
    this.#throwIfStopped()
    const { random, plan, onFinding } = this.#context
    if (!isShuffleError(error) || this.#isCancelled) throw error
    const inputIndex = error.fields['inputIndex']
    if (typeof inputIndex !== 'number') {
      onFinding(`an error of a gate names no input: ${error.code} ${error.message}`)
      throw error
    }
    const input = inputs[inputIndex]
    const slot = this.#context.inputs[inputIndex]?.slot
    if (input === undefined || slot === undefined) throw error
    const { key } = input.current.descriptor
    if (error.fields['attemptId'] !== key.attemptId) {
      onFinding(
        `an error of a gate names ${String(error.fields['attemptId'])} for ${partitionKeyText(key)}`,
      )
    }
    this.#isInputError = true
    const next = await this.#context.replace(slot, key, error)
    this.#throwIfStopped()
    const { action } = errorTable[error.code]
    if (action === 'fail' || !random.chance(plan.updateChance)) throw error
    // Refused when something was handed out, and then the task fails.
    gate.updatePartition(inputIndex, next.descriptor)
    const isOther = partitionKeyText(next.descriptor.key) !== partitionKeyText(key)
    if (input.check.isBegun && isOther) {
      onFinding(`an input that was begun goes on with another attempt: ${partitionKeyText(key)}`)
    }
    input.current = next
    input.check = this.#checkOf(this.#context.inputs[inputIndex]!, next)
    this.#isInputError = false
  }

  #checkCommitted(committed: { readonly recordCount: number }): void {
    const { output, onFinding } = this.#context
    const records = output?.attempt.content.emissions.filter(
      ({ eventCode }) => eventCode === undefined,
    ).length
    if (records === committed.recordCount) return
    onFinding(`a commit says ${String(committed.recordCount)} records, not ${String(records)}`)
  }
}
