// What it means for the writes of a worker that people took it out of service: while it drains no write
// is opened, and those that are open end within the drain time. Owned by the worker.

import type { Clock, Timer } from '../client/common/clock.ts'
import type { ServiceRecord } from '../client/manager/schemas.ts'
import type { WriteService } from './write/write-service.ts'

export class ServiceSwitch {
  readonly #clock: Clock
  readonly #writes: Pick<WriteService, 'startDraining' | 'endDraining' | 'interrupt'>
  /** Asked for each time: it may be changed while the worker runs. */
  readonly #drainTimeoutMs: () => number
  #deadline: Timer | undefined
  #isStopping = false

  constructor(settings: {
    readonly clock: Clock
    readonly writes: Pick<WriteService, 'startDraining' | 'endDraining' | 'interrupt'>
    readonly drainTimeoutMs: () => number
  }) {
    this.#clock = settings.clock
    this.#writes = settings.writes
    this.#drainTimeoutMs = settings.drainTimeoutMs
  }

  apply({ state, reason }: ServiceRecord): void {
    if (this.#isStopping) return
    if (state !== 'draining') {
      this.#cancel()
      this.#writes.endDraining()
      return
    }
    this.#writes.startDraining(`it drains${reason === '' ? '' : ` (${reason})`}`)
    this.#deadline ??= this.#clock.setTimer(this.#drainTimeoutMs(), () => {
      this.#writes.interrupt()
    })
  }

  /** The process ends: from now on it drains, whatever people want, and the caller keeps the time. */
  stop(): void {
    this.#isStopping = true
    this.#cancel()
    this.#writes.startDraining('it is stopping')
  }

  #cancel(): void {
    this.#deadline?.cancel()
    this.#deadline = undefined
  }
}
