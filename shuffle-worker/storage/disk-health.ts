// Whether a data directory's disk can be trusted: a probe at an interval (create, write, read,
// delete; on a suspect disk it syncs too, so that the page cache can't answer for the disk), and
// the trouble that the queue reports. Owned by the storage directory.
//
//   healthy --missed deadline, EIO, failed probe--> suspect --no success for too long--> failed
//      ^------------- a probe begun after that succeeds --------'

import type { Clock, Timer } from '../../client/common/clock.ts'
import type { Disk, DiskFile } from '../../client/common/disk.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import { isDiskFull, systemCodeOf } from './disk-operation.ts'
import type { DiskQueue } from './disk-queue.ts'
import type { DiskHealth } from './storage-types.ts'

export interface DiskHealthSettings {
  readonly clock: Clock
  readonly disk: Disk
  readonly queue: DiskQueue
  readonly directory: string
  readonly probePath: string
  readonly probeIntervalMs: number
  readonly failedAfterMs: number
  readonly onChange: (health: DiskHealth, cause: Error | undefined) => void
}

const probeLength = 4096

export class DiskHealthMonitor {
  readonly #settings: DiskHealthSettings
  #health: DiskHealth = 'healthy'
  #lastSuccessMs: number
  #troubledMs = -Infinity
  #timer: Timer | undefined
  #cause: Error | undefined
  #stopped = false

  constructor(settings: DiskHealthSettings) {
    this.#settings = settings
    this.#lastSuccessMs = settings.clock.nowMs()
  }

  get health(): DiskHealth {
    return this.#health
  }

  get cause(): Error | undefined {
    return this.#cause
  }

  /** The first probe comes after one interval: opening the directory has just proved the disk. */
  start(): void {
    this.#lastSuccessMs = this.#settings.clock.nowMs()
    this.#arm()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  /** The queue saw a missed deadline or an answer that the disk is broken. */
  troubled(error: Error): void {
    this.#troubledMs = this.#settings.clock.nowMs()
    this.#cause = error
    if (this.#health === 'healthy') this.#enter('suspect')
  }

  /** Fails the disk at once: it could not even be opened. */
  giveUp(error: ShuffleError): void {
    this.stop()
    this.#settings.queue.refuseAll(error)
    this.#cause = error
    this.#enter('failed')
  }

  #arm(): void {
    const { clock, probeIntervalMs } = this.#settings
    const dueMs = clock.nowMs() + probeIntervalMs
    this.#timer = clock.setTimer(probeIntervalMs, () => {
      // A process that was stopped itself must not blame the disk for it.
      const lateMs = clock.nowMs() - dueMs
      if (lateMs > probeIntervalMs) this.#lastSuccessMs += lateMs
      this.#judge()
      if (this.#stopped || this.#health === 'failed') return
      if (!this.#settings.queue.isProbing) void this.#probe()
      this.#arm()
    })
  }

  #judge(): void {
    const { clock, failedAfterMs, directory } = this.#settings
    if (clock.nowMs() - this.#lastSuccessMs < failedAfterMs) return
    const error = new ShuffleError(
      'DISK_FAILED',
      `no probe of ${directory} has succeeded for ${String(failedAfterMs)} ms; its partitions are lost, check the disk and restart the worker`,
      { cause: this.#cause, fields: { directory } },
    )
    this.giveUp(error)
  }

  async #probe(): Promise<void> {
    const { clock, queue } = this.#settings
    const startedMs = clock.nowMs()
    const withSync = this.#health !== 'healthy'
    try {
      await queue.probe(() => this.#exercise(withSync)).result
    } catch (error) {
      this.troubled(error as Error)
      return
    }
    if (this.#health === 'failed') return
    this.#lastSuccessMs = clock.nowMs()
    if (this.#health === 'suspect' && withSync && startedMs >= this.#troubledMs) {
      this.#cause = undefined
      this.#enter('healthy')
    }
  }

  async #exercise(withSync: boolean): Promise<void> {
    const { disk, probePath } = this.#settings
    await disk.unlink(probePath).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw error
    })
    // Full is not broken: a disk that answers so is a disk that answers.
    try {
      await this.#writeAndRead(await disk.open(probePath, 'create'), withSync)
    } catch (error) {
      if (!isDiskFull(error)) throw error
    }
    await disk.unlink(probePath).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw error
    })
  }

  async #writeAndRead(file: DiskFile, withSync: boolean): Promise<void> {
    try {
      const pattern = Buffer.alloc(probeLength, 0xa5)
      await file.write([pattern], 0)
      if (withSync) await file.sync()
      const seen = Buffer.alloc(probeLength)
      const count = await file.read(seen, 0)
      if (count !== probeLength || !seen.equals(pattern)) {
        throw Object.assign(new Error('the probe read back other bytes'), { code: 'EIO' })
      }
    } finally {
      await file.close()
    }
  }

  #enter(health: DiskHealth): void {
    this.#health = health
    this.#settings.onChange(health, this.#cause)
  }
}
