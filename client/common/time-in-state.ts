// Time-in-state: how long a channel, a task or a disk spent in each of a closed set of states. It is
// always in exactly one of them, so the sums add up to its age. Owned by what it describes.

import type { Clock } from './clock.ts'

export type StateSums<State extends string> = Readonly<Record<State, number>>

export class TimeInState<State extends string> {
  readonly #clock: Clock
  readonly #sums: Record<State, number>
  #state: State
  #sinceMs: number

  /** Begins in the first of `states`. */
  constructor(clock: Clock, states: readonly [State, ...State[]]) {
    this.#clock = clock
    this.#sums = Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>
    this.#state = states[0]
    this.#sinceMs = clock.nowMs()
  }

  get state(): State {
    return this.#state
  }

  /** From now on in `state`; entering the present state again changes nothing. */
  enter(state: State): void {
    if (state === this.#state) return
    this.#charge()
    this.#state = state
  }

  /** Milliseconds spent in each state up to now, the present one included. */
  sums(): StateSums<State> {
    this.#charge()
    return { ...this.#sums }
  }

  #charge(): void {
    const nowMs = this.#clock.nowMs()
    this.#sums[this.#state] += nowMs - this.#sinceMs
    this.#sinceMs = nowMs
  }
}

/** Adds `more` to `sums`, state by state. */
export function addStateSums<State extends string>(
  sums: Record<State, number>,
  more: StateSums<State>,
): void {
  for (const state of Object.keys(more) as State[]) sums[state] += more[state]
}
