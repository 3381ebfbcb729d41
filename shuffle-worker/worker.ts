// One shuffle worker, wired: storage, memory, write and read services, data port, HTTP port and the
// manager's control. Owned by the process's main, or by a test, which gives it the world.

import type { Logger } from '../client/common/log.ts'
import type { World } from '../client/common/world.ts'
import type { DirectoryOption, WorkerOptions } from './options.ts'

export interface ShuffleWorkerSettings {
  readonly world: World
  readonly options: WorkerOptions
  readonly directories: readonly DirectoryOption[]
  /** The secret of the cluster; undefined leaves the ports open to all. */
  readonly token?: string | undefined
  readonly logger: Logger
}

export class ShuffleWorker {
  static start(_settings: ShuffleWorkerSettings): Promise<ShuffleWorker> {
    throw new Error('being written')
  }

  get workerId(): string {
    throw new Error('being written')
  }

  get dataPort(): number {
    throw new Error('being written')
  }

  get httpPort(): number {
    throw new Error('being written')
  }

  /** Drains, then closes everything. Idempotent. */
  stop(): Promise<void> {
    throw new Error('being written')
  }
}
