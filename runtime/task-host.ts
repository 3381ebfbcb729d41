// The task process's side: runs the attempts that the job master starts, gives each its two ends of
// the shuffle, and tells how they end. Owns the ShuffleEnvironment that its tasks share.

import {
  ShuffleError,
  type Clock,
  type InputGate,
  type ResultPartition,
  type ShuffleDescriptor,
  type ShuffleEnvironment,
  type Timer,
} from '../client/index.ts'
import { describeTaskError } from './task-error.ts'
import type {
  CommittedTotals,
  FromTaskProcess,
  InputsMessage,
  SetUpMessage,
  StartMessage,
} from './task-messages.ts'
import type { JsonValue, TaskContext, TaskRegistry } from './task.ts'

export interface TaskHostOptions {
  readonly clock: Clock
  readonly environment: ShuffleEnvironment
  readonly tasks: TaskRegistry
  readonly settings: Pick<SetUpMessage, 'memory' | 'spillDirectory'>
  /** Unique among the task processes of the machine. */
  readonly name: string
  readonly send: (message: FromTaskProcess) => void
  /** The most memory that this process has had resident so far. */
  readonly peakMemoryBytes: () => number
  /**
   * Called when an attempt has ended, before that is told, and whenever so much was worked through
   * that short-lived memory outside the heap has gathered, for which the collector is in no hurry.
   */
  readonly collectGarbage: () => void
}

/** Often enough for a progress line that moves. */
export const heartbeatIntervalMs = 500

/**
 * Uncompressed blocks that may lie about between two collections. Left to itself the collector waits
 * for 64 MiB of them, as much as the task's whole memory; a collection of the small heap takes some
 * ten milliseconds.
 */
const collectEveryBytes = 16 * 1024 * 1024

interface Run {
  readonly controller: AbortController
  readonly done: Promise<void>
}

interface ShuffleEnds {
  readonly output: ResultPartition | undefined
  readonly gate: InputGate | undefined
}

export class TaskHost {
  readonly #options: TaskHostOptions
  readonly #runs = new Map<number, Run>()
  readonly #progress = new Map<number, number>()
  readonly #inputs = new Map<number, readonly ShuffleDescriptor[]>()
  #timer: Timer | undefined

  constructor(options: TaskHostOptions) {
    this.#options = options
    this.#scheduleHeartbeat()
  }

  setInputs(message: InputsMessage): void {
    this.#inputs.set(message.stage, message.descriptors)
  }

  start(message: StartMessage): void {
    const controller = new AbortController()
    this.#progress.set(message.run, 0)
    const done = this.#run(message, controller.signal).then((outcome) => {
      this.#runs.delete(message.run)
      this.#progress.delete(message.run)
      this.#options.collectGarbage()
      this.#options.send(outcome)
    })
    this.#runs.set(message.run, { controller, done })
  }

  cancel(run: number): void {
    this.#runs
      .get(run)
      ?.controller.abort(new ShuffleError('CANCELLED', 'the job master cancelled the attempt'))
  }

  /** Cancels what runs, then closes the environment. */
  async close(): Promise<void> {
    this.#timer?.cancel()
    const runs = [...this.#runs.entries()]
    for (const [run] of runs) this.cancel(run)
    await Promise.all(runs.map(([, { done }]) => done))
    await this.#options.environment.close()
  }

  #onProgress(run: number, bytes: number): void {
    const before = this.#progress.get(run)
    if (before === undefined) return
    this.#progress.set(run, bytes)
    const step = Math.floor(bytes / collectEveryBytes)
    if (step > Math.floor(before / collectEveryBytes)) this.#options.collectGarbage()
  }

  #scheduleHeartbeat(): void {
    this.#timer = this.#options.clock.setTimer(heartbeatIntervalMs, () => {
      this.#options.send({
        kind: 'heartbeat',
        progress: Object.fromEntries(this.#progress),
        peakMemoryBytes: this.#options.peakMemoryBytes(),
      })
      this.#scheduleHeartbeat()
    })
  }

  /** The top of an attempt: whatever happens in it becomes a message. */
  async #run(message: StartMessage, signal: AbortSignal): Promise<FromTaskProcess> {
    let ends: ShuffleEnds = { output: undefined, gate: undefined }
    try {
      ends = this.#openEnds(message, signal)
      const result = await this.#callTask(message, ends, signal)
      const committed = await commit(ends)
      const progress = this.#progress.get(message.run) ?? 0
      const peakMemoryBytes = this.#options.peakMemoryBytes()
      return { kind: 'finished', run: message.run, result, committed, progress, peakMemoryBytes }
    } catch (error) {
      ends.output?.abort(error)
      return { kind: 'failed', run: message.run, error: describeTaskError(error) }
    } finally {
      await ends.gate?.close()
    }
  }

  #openEnds(message: StartMessage, signal: AbortSignal): ShuffleEnds {
    const { environment, settings } = this.#options
    const gate =
      message.inputStage === undefined
        ? undefined
        : environment.createInputGate({
            inputs: this.#inputsOf(message.inputStage).map((descriptor) => ({
              descriptor,
              firstSubpartition: message.taskIndex,
              lastSubpartition: message.taskIndex,
            })),
            memoryBytes: settings.memory.gateBytes,
            signal,
          })
    const output =
      message.output === undefined
        ? undefined
        : environment.createResultPartition({
            descriptor: message.output,
            memoryBytes: settings.memory.outputBytes,
            signal,
          })
    return { gate, output }
  }

  #inputsOf(stage: number): readonly ShuffleDescriptor[] {
    const inputs = this.#inputs.get(stage)
    if (inputs === undefined) {
      throw new ShuffleError('INVALID_ARGUMENT', 'a task was started before its inputs were told', {
        fields: { stage },
      })
    }
    return inputs
  }

  async #callTask(
    message: StartMessage,
    ends: ShuffleEnds,
    signal: AbortSignal,
  ): Promise<JsonValue> {
    const { tasks, settings, name } = this.#options
    const task = Object.hasOwn(tasks, message.task) ? tasks[message.task] : undefined
    if (task === undefined) {
      throw new ShuffleError('INVALID_ARGUMENT', `no task is registered as ${message.task}`)
    }
    const context: TaskContext = {
      stageName: message.stageName,
      taskIndex: message.taskIndex,
      attempt: message.attempt,
      input: message.input,
      output: ends.output,
      subpartitionCount: message.output?.subpartitionCount ?? 0,
      gate: ends.gate,
      memoryBytes: settings.memory.ownBytes,
      spillDirectory: settings.spillDirectory,
      spillName: `${name}-${String(message.run)}`,
      signal,
      progress: (bytes) => {
        this.#onProgress(message.run, bytes)
      },
    }
    const result = await task(context)
    signal.throwIfAborted()
    return result
  }
}

/** A task that did not read all of its input must not commit what it made of a part. */
async function commit({ output, gate }: ShuffleEnds): Promise<CommittedTotals | undefined> {
  const unread = gate?.inputs().find((input) => input.state !== 'finished')
  if (unread !== undefined) {
    throw new ShuffleError('COUNT_MISMATCH', 'the task ended before it had read all of its input', {
      fields: { inputIndex: unread.inputIndex },
    })
  }
  if (output === undefined) return undefined
  const { recordCount, uncompressedBytes, storedBytes } = await output.finish()
  return { recordCount, uncompressedBytes, storedBytes }
}
