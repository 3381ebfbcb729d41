// Time that moves only when a test says so. One queue holds every event of a virtual world: timers,
// arrivals of bytes, ends of disk operations. Events run in the order of their time and, at one
// time, of their making; between two events everything that Node itself has queued (microtasks,
// ticks, immediates of libraries) runs to its end. So one seed gives one order of events.

import type { Clock, Timer } from '../../client/common/clock.ts'
import { runSteps, type StepOutcome } from './event-turns.ts'
import { libraryImmediates } from './library-immediates.ts'

interface Event {
  readonly atMs: number
  readonly sequence: number
  readonly isTimer: boolean
  callback: (() => void) | undefined
}

/** Events at one instant beyond which a test is taken to spin. */
const eventsPerCallMax = 20_000_000
interface Strike {
  readonly number: number
  readonly callback: () => void
}

/** An advance of time that is longer than this is a leap. */
const leapMs = 1
/**
 * Most turns of the real loop that libraries get to react before time leaps, while they have something
 * queued: undici takes three from a request to its first byte on a connection that was idle, and must
 * not time out over it.
 */
const leapTurnsMax = 20
/** Turns that pass in any case before the world counts as at rest. */
const quietTurns = 3

export interface RunOptions {
  /** Virtual milliseconds within which it must happen; an hour unless given. */
  readonly withinMs?: number
}

export class VirtualClock implements Clock {
  readonly #queue = new EventQueue()
  readonly #startWallMs: number
  #nowMs = 0
  readonly #atEvent: Strike[] = []
  readonly #atTimer: Strike[] = []
  #sequence = 0
  #ran = 0
  #isAfterEvent = false
  #timersRan = 0
  #timers = 0

  constructor(options: { readonly startWallMs?: number } = {}) {
    this.#startWallMs = options.startWallMs ?? Date.UTC(2030, 0, 1)
  }

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#startWallMs + Math.floor(this.#nowMs)
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return this.#add(delayMs, callback, true)
  }

  setImmediate(callback: () => void): Timer {
    return this.#add(0, callback, false)
  }

  /** An event of the world itself (an arrival, a completion); not counted as a timer. */
  schedule(delayMs: number, callback: () => void): Timer {
    return this.#add(delayMs, callback, false)
  }

  /** `callback` between two events, when `count` more have run. */
  afterEvents(count: number, callback: () => void): void {
    this.#atEvent.push({ number: this.#ran + count, callback })
  }

  /** Timers that have run. */
  get timersRan(): number {
    return this.#timersRan
  }

  /** `callback` just before the timer runs that is the `count`-th from now on. */
  beforeTimer(count: number, callback: () => void): void {
    this.#atTimer.push({ number: this.#timersRan + count, callback })
  }

  /** Timers set and neither run nor cancelled; zero when everything has been given back. */
  get timerCount(): number {
    return this.#timers
  }

  /** Everything queued, timers and events of the world. */
  get eventCount(): number {
    return this.#queue.size
  }

  /** Runs all that is due within the next `durationMs`, then stands at the end of it. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs
    await this.#run(endMs, never)
    this.#nowMs = endMs
  }

  /** Runs all that is due now, without moving time. */
  async settle(): Promise<void> {
    await this.advance(0)
  }

  /** Runs events until `condition` holds; fails when nothing is left to run or time is up. */
  async runUntil(condition: () => boolean, options: RunOptions = {}): Promise<void> {
    const endMs = this.#nowMs + (options.withinMs ?? 3_600_000)
    if (await this.#run(endMs, condition)) return
    throw new Error(
      `the condition does not hold after all that was to happen until ${String(this.#nowMs)} ms`,
    )
  }

  /** Runs events until `promise` settles, and gives its outcome. */
  async drive<T>(promise: Promise<T>, options: RunOptions = {}): Promise<T> {
    let isSettled = false
    const mark = () => {
      isSettled = true
    }
    promise.then(mark, mark)
    try {
      await this.runUntil(() => isSettled, options)
    } catch (error) {
      throw new Error(`a promise stays pending: ${(error as Error).message}`, { cause: error })
    }
    return promise
  }

  /** Runs until nothing is queued; for repeating timers use {@link advance}. */
  async runAll(options: RunOptions = {}): Promise<void> {
    await this.runUntil(() => this.#queue.size === 0, options)
  }

  /** False when nothing is left to run before the condition holds. */
  async #run(endMs: number, condition: () => boolean): Promise<boolean> {
    let isHeld = false
    let turns = 0
    let count = 0
    await runSteps((isNewTurn): StepOutcome => {
      if (!isNewTurn && libraryImmediates.count > 0) return 'wait'
      this.#afterEvent()
      isHeld = condition()
      if (isHeld) return 'over'
      const event = this.#next(endMs, turns)
      if (event === 'idle') return 'over'
      if (event === 'wait') {
        turns += 1
        return 'wait'
      }
      turns = 0
      count += 1
      failIfSpinning(count)
      this.#perform(event)
      return 'again'
    })
    return isHeld
  }

  /** What comes next, `turns` of the real loop after the last event. */
  #next(endMs: number, turns: number): Event | 'wait' | 'idle' {
    const soon = this.#queue.takeUntil(Math.min(endMs, this.#nowMs + leapMs))
    if (soon !== undefined) return soon
    const isLibraryBusy = libraryImmediates.count > 0 && turns < leapTurnsMax
    if (isLibraryBusy) return 'wait'
    const later = this.#queue.takeUntil(endMs)
    if (later !== undefined) return later
    return turns < quietTurns ? 'wait' : 'idle'
  }

  #perform(event: Event): void {
    this.#nowMs = Math.max(this.#nowMs, event.atMs)
    if (event.isTimer) {
      this.#timersRan += 1
      if (this.#atTimer.length > 0) strike(this.#atTimer, this.#timersRan)
    }
    // What strikes may have cancelled it.
    const { callback } = event
    this.#forget(event)
    this.#isAfterEvent = true
    callback?.()
  }

  /** With all that followed from the event. */
  #afterEvent(): void {
    if (!this.#isAfterEvent) return
    this.#isAfterEvent = false
    this.#ran += 1
    if (this.#atEvent.length > 0) strike(this.#atEvent, this.#ran)
  }

  #add(delayMs: number, callback: () => void, isTimer: boolean): Timer {
    // A delay that isn't a number would never be due, and nobody would learn why.
    if (!(delayMs >= 0)) throw new RangeError(`a delay of ${String(delayMs)} ms`)
    const event: Event = {
      atMs: this.#nowMs + delayMs,
      sequence: this.#sequence++,
      isTimer,
      callback,
    }
    if (isTimer) this.#timers += 1
    this.#queue.add(event)
    return {
      cancel: () => {
        if (event.callback !== undefined) this.#queue.noteCancelled()
        this.#forget(event)
      },
    }
  }

  #forget(event: Event): void {
    if (event.callback === undefined) return
    event.callback = undefined
    if (event.isTimer) this.#timers -= 1
  }
}

function never(): boolean {
  return false
}

function strike(waiting: Strike[], number: number): void {
  for (const each of [...waiting]) {
    if (each.number > number) continue
    waiting.splice(waiting.indexOf(each), 1)
    each.callback()
  }
}

function failIfSpinning(count: number): void {
  if (count > eventsPerCallMax) throw new Error(`the world spins: ${String(count)} events`)
}

/** A binary heap by time, then by order of making. Cancelled events stay until their turn. */
class EventQueue {
  readonly #heap: Event[] = []
  #cancelled = 0

  get size(): number {
    return this.#heap.length - this.#cancelled
  }

  noteCancelled(): void {
    this.#cancelled += 1
  }

  add(event: Event): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(event)
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = heap[parentIndex]
      if (parent === undefined || isBefore(parent, event)) break
      heap[index] = parent
      index = parentIndex
    }
    heap[index] = event
  }

  /** The next event that is not cancelled, if it is due by `endMs`. */
  takeUntil(endMs: number): Event | undefined {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || (first.callback !== undefined && first.atMs > endMs)) {
        return undefined
      }
      this.#removeFirst()
      if (first.callback !== undefined) return first
      this.#cancelled -= 1
    }
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      const childIndex = this.#smallerChild(index)
      const child = heap[childIndex]
      if (child === undefined || isBefore(last, child)) break
      heap[index] = child
      index = childIndex
    }
    heap[index] = last
  }

  #smallerChild(index: number): number {
    const leftIndex = index * 2 + 1
    const left = this.#heap[leftIndex]
    const right = this.#heap[leftIndex + 1]
    return left !== undefined && right !== undefined && isBefore(right, left)
      ? leftIndex + 1
      : leftIndex
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.sequence < b.sequence)
}
