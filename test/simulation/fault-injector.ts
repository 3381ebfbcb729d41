// Makes the faults of a plan happen.

import type { VirtualWorld } from '../support/virtual-world.ts'
import type { Cluster } from './cluster.ts'
import type { Coverage } from './coverage.ts'
import type { FaultPlan } from './fault-plan.ts'
import type { SeenMessage } from './frame-tap.ts'
import type { SimJob } from './job.ts'
import type { Truth } from './truth.ts'

export interface InjectorContext {
  readonly virtual: VirtualWorld
  readonly cluster: Cluster
  readonly jobs: () => readonly SimJob[]
  readonly truth: Truth
  readonly coverage: Coverage
  readonly note: (text: string) => void
}

export class FaultInjector {
  readonly #context: InjectorContext
  count = 0
  hasDamaged = false

  constructor(context: InjectorContext) {
    this.#context = context
  }

  inject(fault: FaultPlan): void {
    this.#context.note(`fault ${fault.kind}`)
  }

  onMessage(_message: SeenMessage): void {
    return
  }

  healAll(): void {
    return
  }
}
