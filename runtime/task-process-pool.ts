// The task processes of a job and their slots. A process that ends or goes silent fails what ran in
// it and is replaced, a bounded number of times.
//
//   starting ── ready ──> ready (slots free or taken) ── exit ──> replaced by a new one, or gone

import { type Clock, type Timer } from '../client/index.ts'
import type { TaskError } from './task-error.ts'
import type {
  CancelMessage,
  FromTaskProcess,
  InputsMessage,
  SetUpMessage,
  StartMessage,
} from './task-messages.ts'
import type { StartTaskProcess, TaskProcess } from './task-process.ts'

export type FinishedMessage = Extract<FromTaskProcess, { kind: 'finished' }>

export interface PoolHandler {
  onFinished(message: FinishedMessage): void
  onFailed(run: number, error: TaskError): void
  /** A slot may be free. */
  onSlot(): void
  /** No process is left and none may be started any more. */
  onBroken(error: TaskError): void
}

export interface PoolOptions {
  readonly clock: Clock
  readonly startTaskProcess: StartTaskProcess
  readonly processCount: number
  readonly slotsPerProcess: number
  readonly setUp: SetUpMessage
  readonly handler: PoolHandler
  readonly limits?: Partial<PoolLimits>
}

export interface PoolLimits {
  /** Processes started in place of ended ones; enough for every one to die a few times. */
  readonly restartsMax: number
  /** A process heartbeats twice a second; one that sorts or is starved of the processor is late. */
  readonly silenceMaxMs: number
  /** How long processes may take to close before they are killed. */
  readonly closeTimeoutMs: number
}

const defaultLimits: PoolLimits = {
  restartsMax: 16,
  silenceMaxMs: 120_000,
  closeTimeoutMs: 15_000,
}

/** One process of the pool. */
interface Member {
  readonly process: TaskProcess
  readonly runs: Set<number>
  /** Stages whose inputs it was told, and which version of them. */
  readonly inputVersions: Map<number, number>
  isReady: boolean
  silence: Timer
}

/** A slot taken for a run, before and after it is started. */
export interface Slot {
  readonly run: number
  /** Passes the inputs of a stage unless the process has this version of them. */
  setInputs(version: number, message: InputsMessage): void
  start(message: StartMessage): void
  cancel(message: CancelMessage): void
  /** Gives the slot back without having started. */
  giveBack(): void
}

export class TaskProcessPool {
  readonly #options: PoolOptions
  readonly #limits: PoolLimits
  readonly #members = new Set<Member>()
  readonly #progress = new Map<number, number>()
  readonly #peaks = new Map<number, number>()
  #restarts = 0
  #onEmpty: (() => void) | undefined
  #isClosing = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
  }

  /** Processes started in place of ended ones. */
  get restarts(): number {
    return this.#restarts
  }

  /** The most memory that each process had resident, by its pid, as far as it told. */
  get peakMemoryBytes(): ReadonlyMap<number, number> {
    return this.#peaks
  }

  get processes(): readonly TaskProcess[] {
    return [...this.#members].map((member) => member.process)
  }

  start(): void {
    for (let index = 0; index < this.#options.processCount; index++) this.#startMember()
  }

  /** What a run that is under way told last, in bytes. */
  progressOf(run: number): number {
    return this.#progress.get(run) ?? 0
  }

  /** Takes a slot of the least busy process; undefined when all are taken. */
  takeSlot(run: number): Slot | undefined {
    let best: Member | undefined
    for (const member of this.#members) {
      const isFree = member.isReady && member.runs.size < this.#options.slotsPerProcess
      if (isFree && (best === undefined || member.runs.size < best.runs.size)) best = member
    }
    if (best === undefined) return undefined
    best.runs.add(run)
    return slotOf(best, run)
  }

  /** Ends all processes; those that don't end by themselves in time are killed. */
  async close(): Promise<void> {
    this.#isClosing = true
    if (this.#members.size === 0) return
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    for (const { process } of this.#members) process.send({ kind: 'close' })
    const timer = this.#options.clock.setTimer(this.#limits.closeTimeoutMs, () => {
      for (const { process } of this.#members) process.kill()
    })
    await empty
    timer.cancel()
  }

  #startMember(): void {
    const { startTaskProcess, setUp } = this.#options
    const process = startTaskProcess({
      onMessage: (message) => {
        this.#receive(member, message)
      },
      onExit: (reason) => {
        this.#end(member, reason)
      },
    })
    const member: Member = {
      process,
      runs: new Set(),
      inputVersions: new Map(),
      isReady: false,
      silence: this.#watchSilence(process),
    }
    this.#members.add(member)
    process.send(setUp)
  }

  #receive(member: Member, message: FromTaskProcess): void {
    member.silence.cancel()
    member.silence = this.#watchSilence(member.process)
    if ('peakMemoryBytes' in message) {
      this.#peaks.set(member.process.pid ?? 0, message.peakMemoryBytes)
    }
    switch (message.kind) {
      case 'ready':
        member.isReady = true
        this.#options.handler.onSlot()
        return
      case 'heartbeat':
        for (const [run, bytes] of Object.entries(message.progress)) {
          if (member.runs.has(Number(run))) this.#progress.set(Number(run), bytes)
        }
        return
      case 'finished':
        this.#leave(member, message.run)
        this.#options.handler.onFinished(message)
        return
      case 'failed':
        this.#leave(member, message.run)
        this.#options.handler.onFailed(message.run, message.error)
    }
  }

  #leave(member: Member, run: number): void {
    member.runs.delete(run)
    this.#progress.delete(run)
  }

  #watchSilence(process: TaskProcess): Timer {
    return this.#options.clock.setTimer(this.#limits.silenceMaxMs, () => {
      process.kill()
    })
  }

  #end(member: Member, reason: string): void {
    member.silence.cancel()
    this.#members.delete(member)
    if (this.#isClosing) {
      if (this.#members.size === 0) this.#onEmpty?.()
      return
    }
    const error = processEnded(member.process, reason)
    if (this.#restarts < this.#limits.restartsMax) {
      this.#restarts += 1
      this.#startMember()
    } else if (this.#members.size === 0) this.#options.handler.onBroken(error)
    for (const run of [...member.runs]) {
      this.#leave(member, run)
      this.#options.handler.onFailed(run, error)
    }
  }
}

function slotOf(member: Member, run: number): Slot {
  const { process, runs, inputVersions } = member
  return {
    run,
    setInputs: (version, message) => {
      if (inputVersions.get(message.stage) === version) return
      inputVersions.set(message.stage, version)
      process.send(message)
    },
    start: (message) => {
      process.send(message)
    },
    cancel: (message) => {
      process.send(message)
    },
    giveBack: () => {
      runs.delete(run)
    },
  }
}

function processEnded(process: TaskProcess, reason: string): TaskError {
  const message = `task process ${String(process.pid)} is gone: ${reason}`
  return { message, fields: {}, stack: message }
}
