// How often what was reached, over one seed or many.

import { errorTable } from '../../client/common/errors.ts'
import { messageList } from '../../client/protocol/messages.ts'
import { faultKinds, type FaultKind } from './fault-plan.ts'

const kindsOfCount = ['faults', 'pairs', 'errors', 'messages'] as const

/** As it goes from one process to another. */
export interface CoverageParts {
  readonly faults: readonly (readonly [string, number])[]
  readonly pairs: readonly (readonly [string, number])[]
  readonly errors: readonly (readonly [string, number])[]
  readonly messages: readonly (readonly [string, number])[]
}

export class Coverage {
  readonly faults = new Map<string, number>(faultKinds.map((kind) => [kind, 0]))
  /** Two kinds that both hit something in one seed. */
  readonly pairs = new Map<string, number>()
  readonly errors = new Map<string, number>(Object.keys(errorTable).map((code) => [code, 0]))
  readonly messages = new Map<string, number>(messageList.map(({ name }) => [name, 0]))

  get faultsHit(): number {
    let sum = 0
    for (const count of this.faults.values()) sum += count
    return sum
  }

  fault(kind: FaultKind): void {
    increment(this.faults, kind)
  }

  error(code: string): void {
    increment(this.errors, code)
  }

  /** How a stranger's act was received; the system's own codes are none of ours. */
  reception(code: string): void {
    if (this.errors.has(code)) increment(this.errors, code)
  }

  message(name: string): void {
    increment(this.messages, name)
  }

  /** After a seed: its kinds, two by two. */
  pair(): void {
    const hit = [...this.faults].filter(([, count]) => count > 0).map(([kind]) => kind)
    hit.forEach((a, index) => {
      for (const b of hit.slice(index + 1)) increment(this.pairs, `${a} + ${b}`)
    })
  }

  add(other: CoverageParts): void {
    for (const kind of kindsOfCount) {
      for (const [name, count] of other[kind]) increment(this[kind], name, count)
    }
  }

  parts(): CoverageParts {
    return {
      faults: [...this.faults],
      pairs: [...this.pairs],
      errors: [...this.errors],
      messages: [...this.messages],
    }
  }

  /** What a person wants to see of it. */
  *lines(): Generator<string, void> {
    const pairsOfAll = (faultKinds.length * (faultKinds.length - 1)) / 2
    yield `faults: ${textOf(this.faults)}`
    yield `pairs of faults in one seed: ${String(this.pairs.size)} of ${String(pairsOfAll)}`
    const missing = pairsMissing(this.pairs)
    if (missing.length <= 60 && missing.length > 0) yield `  never: ${missing.join(', ')}`
    yield `error codes: ${textOf(this.errors)}`
    yield `messages: ${textOf(this.messages)}`
    for (const [what, counts] of [
      ['faults', this.faults],
      ['error codes', this.errors],
    ] as const) {
      const zero = [...counts].filter(([, count]) => count === 0).map(([name]) => name)
      yield `${what} never reached: ${zero.length === 0 ? 'none' : zero.join(', ')}`
    }
  }
}

function pairsMissing(pairs: ReadonlyMap<string, number>): readonly string[] {
  return faultKinds.flatMap((a, index) =>
    faultKinds
      .slice(index + 1)
      .map((b) => `${a} + ${b}`)
      .filter((pair) => !pairs.has(pair)),
  )
}

function textOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, times]) => `${name} ${String(times)}`).join(', ')
}

function increment(map: Map<string, number>, name: string, by = 1): void {
  map.set(name, (map.get(name) ?? 0) + by)
}
