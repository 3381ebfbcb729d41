// How often what was reached, over one seed or many.

import { errorTable } from '../../client/common/errors.ts'
import { messageList } from '../../client/protocol/messages.ts'
import { faultKinds, type FaultKind } from './fault-plan.ts'

export class Coverage {
  readonly faults = new Map<string, number>(faultKinds.map((kind) => [kind, 0]))
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

  message(name: string): void {
    increment(this.messages, name)
  }

  /** After a seed: its kinds, two by two. */
  pair(): void {
    const hit = [...this.faults].filter(([, count]) => count > 0).map(([kind]) => kind)
    for (const a of hit) for (const b of hit) if (a < b) increment(this.pairs, `${a} ${b}`)
  }

  add(other: Coverage): void {
    for (const [name, count] of other.faults) increment(this.faults, name, count)
    for (const [name, count] of other.pairs) increment(this.pairs, name, count)
    for (const [name, count] of other.errors) increment(this.errors, name, count)
    for (const [name, count] of other.messages) increment(this.messages, name, count)
  }
}

function increment(map: Map<string, number>, name: string, by = 1): void {
  map.set(name, (map.get(name) ?? 0) + by)
}
