// A simulated process: the seams of a VirtualProcess with what a simulation does to a process besides
// killing it. It can be paused (nothing of it runs, nothing reaches it, until it goes on) and its wall
// clock can jump.

import type { Clock, Timer } from '../../client/common/clock.ts'
import type { Compute } from '../../client/common/compute.ts'
import type { Disk, DiskFile } from '../../client/common/disk.ts'
import type { World } from '../../client/common/world.ts'
import type { VirtualProcess, VirtualWorld } from '../support/virtual-world.ts'
import type { FrameTap } from './frame-tap.ts'

/** What a planted fault makes of the seams; nothing unless one is installed. */
export const seamMutation: { disk: ((disk: Disk) => Disk) | undefined } = { disk: undefined }

const justMs = 3_000

export class SimProcess {
  readonly host: string
  /** What the code under test is given. */
  readonly world: World
  /** Resolves when the process is killed. */
  readonly ended: Promise<void>
  readonly #virtual: VirtualWorld
  readonly #process: VirtualProcess
  readonly #held: (() => void)[] = []
  #isPaused = false
  #resumedMs = -Infinity
  #wallOffsetMs = 0

  constructor(virtual: VirtualWorld, host: string, tap: FrameTap) {
    this.host = host
    this.#virtual = virtual
    this.#process = virtual.start(host)
    this.ended = new Promise((resolve) => {
      this.#process.life.atEnd(resolve)
    })
    this.world = {
      clock: this.#clock(),
      random: this.#process.random,
      network: tap.wrap(this, this.#process.network),
      disk: seamMutation.disk?.(this.#disk()) ?? this.#disk(),
      compute: this.#compute(),
    }
  }

  get isAlive(): boolean {
    return this.#process.life.isAlive
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** When it last went on after a pause; minus infinity when it never was paused. */
  get resumedMs(): number {
    return this.#resumedMs
  }

  /** Its timers may still be late. */
  get isJustResumed(): boolean {
    return this.#virtual.clock.nowMs() - this.#resumedMs < justMs
  }

  kill(): void {
    this.#process.kill()
    this.#held.length = 0
  }

  /** Tells the process that the wall clock has moved; the monotonic one has not. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs
  }

  pause(others: readonly string[]): void {
    if (this.#isPaused || !this.isAlive) return
    this.#isPaused = true
    for (const other of others) this.#virtual.network.partition(this.host, other)
  }

  resume(others: readonly string[]): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#resumedMs = this.#virtual.clock.nowMs()
    for (const other of others) this.#virtual.network.heal(this.host, other)
    for (const go of this.#held.splice(0)) this.#virtual.clock.schedule(0, go)
  }

  /** `run` when the process runs. */
  #whenRunning(run: () => void): void {
    if (!this.isAlive) return
    if (this.#isPaused) {
      this.#held.push(() => {
        this.#whenRunning(run)
      })
    } else run()
  }

  #heard<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => {
          this.#whenRunning(() => {
            resolve(value)
          })
        },
        (error: unknown) => {
          this.#whenRunning(() => {
            reject(error)
          })
        },
      )
    })
  }

  #clock(): Clock {
    const { clock } = this.#process
    const guarded = (set: (callback: () => void) => Timer, callback: () => void): Timer => {
      let isCancelled = false
      const timer = set(() => {
        this.#whenRunning(() => {
          if (!isCancelled) callback()
        })
      })
      return {
        cancel: () => {
          isCancelled = true
          timer.cancel()
        },
      }
    }
    return {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs() + this.#wallOffsetMs,
      setTimer: (delayMs, callback) => guarded((run) => clock.setTimer(delayMs, run), callback),
      setImmediate: (callback) => guarded((run) => clock.setImmediate(run), callback),
    }
  }

  #compute(): Compute {
    const { compute } = this.#process
    return {
      compress: (bytes) => this.#heard(compute.compress(bytes)),
      uncompress: (block, sizeBytes) => this.#heard(compute.uncompress(block, sizeBytes)),
    }
  }

  #disk(): Disk {
    const { disk } = this.#process
    return {
      open: async (path, mode) => this.#file(await this.#heard(disk.open(path, mode))),
      rename: (from, to) => this.#heard(disk.rename(from, to)),
      unlink: (path) => this.#heard(disk.unlink(path)),
      makeDirectory: (path) => this.#heard(disk.makeDirectory(path)),
      list: (path) => this.#heard(disk.list(path)),
      status: (path) => this.#heard(disk.status(path)),
      syncDirectory: (path) => this.#heard(disk.syncDirectory(path)),
      space: (path) => this.#heard(disk.space(path)),
      lock: (path) => this.#heard(disk.lock(path)),
      bootId: () => this.#heard(disk.bootId()),
    }
  }

  #file(file: DiskFile): DiskFile {
    return {
      write: (parts, position) => this.#heard(file.write(parts, position)),
      read: (target, position) => this.#heard(file.read(target, position)),
      sync: () => this.#heard(file.sync()),
      truncate: (sizeBytes) => this.#heard(file.truncate(sizeBytes)),
      sizeBytes: () => this.#heard(file.sizeBytes()),
      close: () => this.#heard(file.close()),
    }
  }
}
