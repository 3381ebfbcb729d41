// The one way to a data directory's disk. Every file call waits here for a slot, runs with a
// deadline and is measured. A call that misses its deadline fails for its caller at once but keeps
// its slot, and the memory that it may still touch, until the system really ends it: so a hung disk
// costs its own few slots and no thread of another disk. Owned by its storage directory.
//
//   submit -> [ read ....... ] \
//             [ write ...    ]  >- slots (lane limit, total limit) -> disk
//             [ control .    ] /
//   probe  --------------------- one slot of its own ------------> disk

import { assert } from '../../client/common/assert.ts'
import type { Clock, Timer } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import {
  diskError,
  diskLanes,
  isDiskBroken,
  isDiskFull,
  laneOf,
  type DiskLane,
  type DiskLimits,
  type DiskOperationKind,
} from './disk-operation.ts'

export interface DiskOperation<T> {
  readonly kind: DiskOperationKind
  readonly run: () => Promise<T>
  /** Takes the value of an operation that ended after its deadline: close the late file. */
  readonly onLate?: (value: T) => void
}

/** `result` is the caller's outcome; `ended`, which never rejects, is the end of the real call. */
export interface SubmittedOperation<T> {
  readonly result: Promise<T>
  readonly ended: Promise<void>
}

export interface DiskQueueObserver {
  /** After each operation: how long it was at the disk, and how it went. */
  measured(kind: DiskOperationKind, seconds: number, outcome: 'ok' | 'failed' | 'late'): void
  /** The disk missed a deadline, or answered that it is broken. */
  troubled(error: ShuffleError): void
  /** The disk answered that it has no room. */
  full(): void
}

export interface DiskQueueSettings {
  readonly clock: Clock
  readonly directory: string
  readonly limits: DiskLimits
  readonly operationTimeoutMs: number
  readonly observer: DiskQueueObserver
}

/** A disk with more waiting than that is not behind, it is stuck. */
const waitingMax = 65_536
/** A timer that fires so late means that this process was stopped, not the disk. */
const ownLatenessMs = 1000

interface Task {
  readonly kind: DiskOperationKind
  readonly begin: () => Promise<void>
  readonly refuse: (error: ShuffleError) => void
  /** Fails the caller; false when the call has ended already. */
  readonly miss: (error: ShuffleError) => boolean
  /** The slot is free again. */
  readonly end: () => void
}

interface LaneState {
  readonly limit: number
  readonly waiting: Task[]
  inFlight: number
  late: number
}

export class DiskQueue {
  readonly limits: DiskLimits
  readonly #clock: Clock
  readonly #directory: string
  readonly #timeoutMs: number
  readonly #observer: DiskQueueObserver
  readonly #lanes: Readonly<Record<DiskLane, LaneState>>
  #nextLane = 0
  #probing = false
  #refusal: ShuffleError | undefined

  constructor(settings: DiskQueueSettings) {
    this.#clock = settings.clock
    this.#directory = settings.directory
    this.#timeoutMs = settings.operationTimeoutMs
    this.#observer = settings.observer
    this.limits = settings.limits
    const lane = (limit: number): LaneState => ({ limit, waiting: [], inFlight: 0, late: 0 })
    this.#lanes = {
      read: lane(settings.limits.read),
      write: lane(settings.limits.write),
      control: lane(settings.limits.control),
    }
  }

  get inFlightCount(): number {
    return diskLanes.reduce((sum, each) => sum + this.#lanes[each].inFlight, 0)
  }

  get waitingCount(): number {
    return diskLanes.reduce((sum, each) => sum + this.#lanes[each].waiting.length, 0)
  }

  /** {@link submit} for calls that touch no memory of the caller's. */
  run<T>(operation: DiskOperation<T>): Promise<T> {
    return this.submit(operation).result
  }

  submit<T>(operation: DiskOperation<T>): SubmittedOperation<T> {
    const { task, submitted } = this.#prepare(operation)
    const lane = this.#lanes[laneOf(operation.kind)]
    const refusal = this.#refusal ?? this.#stuckError(lane, operation.kind)
    if (refusal !== undefined && !this.#outlives(task, refusal)) return submitted
    lane.waiting.push(task)
    this.#dispatch()
    return submitted
  }

  /** Runs past all that waits, in the probe's own slot. One at a time. */
  probe(run: () => Promise<void>): SubmittedOperation<void> {
    assert(!this.#probing, 'one probe is outstanding at most')
    const { task, submitted } = this.#prepare({ kind: 'probe', run })
    this.#probing = true
    void this.#watch(task, () => undefined).then(() => {
      this.#probing = false
      task.end()
    })
    return submitted
  }

  get isProbing(): boolean {
    return this.#probing
  }

  /** The disk is given up: refuses all that waits and all that comes. */
  refuseAll(error: ShuffleError): void {
    this.#refusal = error
    for (const each of diskLanes) this.#refuseWaiting(this.#lanes[each], error)
  }

  #prepare<T>(operation: DiskOperation<T>): {
    readonly task: Task
    readonly submitted: SubmittedOperation<T>
  } {
    const outcome = new Outcome<T>()
    const { kind } = operation
    const task: Task = {
      kind,
      begin: () => this.#perform(operation, outcome),
      refuse: (error) => {
        outcome.reject(error)
        outcome.end()
      },
      miss: (error) => outcome.reject(error),
      end: () => {
        outcome.end()
      },
    }
    return { task, submitted: { result: outcome.result, ended: outcome.ended } }
  }

  async #perform<T>(operation: DiskOperation<T>, outcome: Outcome<T>): Promise<void> {
    const startedMs = this.#clock.nowMs()
    const { kind } = operation
    const measure = (result: 'ok' | 'failed') => {
      const seconds = (this.#clock.nowMs() - startedMs) / 1000
      this.#observer.measured(kind, seconds, outcome.isSettled ? 'late' : result)
    }
    try {
      const value = await operation.run()
      measure('ok')
      if (!outcome.resolve(value)) operation.onLate?.(value)
    } catch (error) {
      measure('failed')
      const ours = diskError(error, { kind, directory: this.#directory })
      const first = outcome.reject(ours)
      if (first && isDiskBroken(ours)) this.#observer.troubled(ours)
      if (isDiskFull(ours)) this.#observer.full()
    }
  }

  #dispatch(): void {
    while (this.inFlightCount < this.limits.total) {
      const lane = this.#pickLane()
      const task = lane?.waiting.shift()
      if (lane === undefined || task === undefined) return
      void this.#occupy(lane, task)
    }
  }

  #pickLane(): LaneState | undefined {
    for (let turn = 0; turn < diskLanes.length; turn += 1) {
      const name = diskLanes[(this.#nextLane + turn) % diskLanes.length]
      if (name === undefined) break
      const lane = this.#lanes[name]
      if (lane.waiting.length === 0 || lane.inFlight >= lane.limit) continue
      this.#nextLane = (this.#nextLane + turn + 1) % diskLanes.length
      return lane
    }
    return undefined
  }

  async #occupy(lane: LaneState, task: Task): Promise<void> {
    lane.inFlight += 1
    let lateCount = 0
    await this.#watch(task, () => {
      lateCount = 1
      lane.late += 1
      this.#refuseStuck()
    })
    lane.inFlight -= 1
    lane.late -= lateCount
    task.end()
    this.#dispatch()
  }

  /** Runs the task to its real end; `onMissed` when the deadline passes before that. */
  async #watch(task: Task, onMissed: () => void): Promise<void> {
    const timer = new DeadlineTimer(this.#clock, this.#timeoutMs, () => {
      const error = this.#missedError(task.kind)
      if (!task.miss(error)) return
      onMissed()
      this.#observer.troubled(error)
    })
    await task.begin()
    timer.cancel()
  }

  #missedError(kind: DiskOperationKind): ShuffleError {
    return new ShuffleError(
      'DISK_FAILED',
      `${kind} has not ended for ${String(this.#timeoutMs)} ms on the disk of ${this.#directory}; check the disk`,
      { fields: { operation: kind, directory: this.#directory, systemCode: 'ETIMEDOUT' } },
    )
  }

  /** Whatever waits for slots that are all held by late calls would wait for ever. */
  #refuseStuck(): void {
    for (const each of diskLanes) {
      const lane = this.#lanes[each]
      if (this.#isStuck(lane)) this.#refuseWaiting(lane, this.#missedError('open'))
    }
  }

  #isStuck(lane: LaneState): boolean {
    if (lane.late === lane.limit) return true
    const late = diskLanes.reduce((sum, each) => sum + this.#lanes[each].late, 0)
    return late === this.limits.total
  }

  #stuckError(lane: LaneState, kind: DiskOperationKind): ShuffleError | undefined {
    if (this.#isStuck(lane)) return this.#missedError(kind)
    if (lane.waiting.length < waitingMax) return undefined
    return new ShuffleError('BUSY', `too many operations wait for the disk of ${this.#directory}`, {
      fields: { directory: this.#directory, operation: kind },
    })
  }

  #refuseWaiting(lane: LaneState, error: ShuffleError): void {
    lane.waiting.push(...lane.waiting.splice(0).filter((task) => this.#outlives(task, error)))
  }

  /** Fails the caller. A close still waits for its slot, else its descriptor would be lost. */
  #outlives(task: Task, error: ShuffleError): boolean {
    if (task.kind === 'close') {
      task.miss(error)
      return true
    }
    task.refuse(error)
    return false
  }
}

/** Two promises that something else settles; the first settlement of `result` decides. */
class Outcome<T> {
  readonly result: Promise<T>
  readonly ended: Promise<void>
  #accept: (value: T) => void = () => undefined
  #refuse: (error: Error) => void = () => undefined
  #finish: () => void = () => undefined
  #settled = false

  constructor() {
    this.result = new Promise<T>((resolve, reject) => {
      this.#accept = resolve
      this.#refuse = reject
    })
    this.ended = new Promise<void>((resolve) => {
      this.#finish = resolve
    })
    // A caller may look at `ended` first.
    this.result.catch(() => undefined)
  }

  get isSettled(): boolean {
    return this.#settled
  }

  resolve(value: T): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#accept(value)
    return true
  }

  reject(error: Error): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#refuse(error)
    return true
  }

  end(): void {
    this.#finish()
  }
}

/** A deadline that is not fooled when the process itself was stopped: it then waits once more. */
class DeadlineTimer {
  #timer: Timer | undefined

  constructor(clock: Clock, timeoutMs: number, onPassed: () => void) {
    const arm = (): void => {
      const dueMs = clock.nowMs() + timeoutMs
      this.#timer = clock.setTimer(timeoutMs, () => {
        if (clock.nowMs() - dueMs > ownLatenessMs) arm()
        else onPassed()
      })
    }
    arm()
  }

  cancel(): void {
    this.#timer?.cancel()
  }
}
