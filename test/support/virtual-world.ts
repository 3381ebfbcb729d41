// A whole world from one seed: one clock, one network of machines, the disks of each machine, and
// processes that live on them and can be killed. `world` of the process 'main' is enough for a test
// of one thing.

import type { Clock, Timer } from '../../client/common/clock.ts'
import type { Disk } from '../../client/common/disk.ts'
import type { Network } from '../../client/common/network.ts'
import type { World } from '../../client/common/world.ts'
import type { DiskModel } from './disk-model.ts'
import { LengthsOnlyFile } from './lengths-only-file.ts'
import { Trace } from './trace.ts'
import { VirtualClock } from './virtual-clock.ts'
import { VirtualCompute } from './virtual-compute.ts'
import { VirtualDisk } from './virtual-disk.ts'
import { Life } from './virtual-life.ts'
import { FileNode } from './virtual-file-tree.ts'
import { VirtualNetwork } from './virtual-network.ts'
import type { PipeSettings } from './virtual-pipe.ts'
import { VirtualRandom } from './virtual-random.ts'

export interface VirtualWorldOptions {
  readonly seed?: number | string
  readonly network?: Partial<PipeSettings>
  readonly diskLatencyMs?: readonly [min: number, max: number]
  /** Times the disk of the one machine that has one; files matching `lengthsOnly` keep no payload. */
  readonly diskModel?: { readonly model: DiskModel; readonly lengthsOnly: RegExp }
}

/** What a process gets, with the virtual things in sight of the test. */
export interface VirtualProcess extends World {
  readonly host: string
  readonly life: Life
  readonly clock: Clock
  readonly network: Network
  readonly disk: Disk
  /** As kill -9: nothing of it runs any more, its sockets close, its files stay as they are. */
  kill(): void
}

export class VirtualWorld {
  readonly seed: number | string
  readonly random: VirtualRandom
  readonly clock = new VirtualClock()
  readonly trace = new Trace()
  readonly network: VirtualNetwork
  readonly #options: VirtualWorldOptions
  readonly #disks = new Map<string, VirtualDisk>()
  #main: VirtualProcess | undefined
  #processCount = 0

  constructor(options: VirtualWorldOptions = {}) {
    this.#options = options
    this.seed = options.seed ?? 1
    this.random = new VirtualRandom(this.seed)
    this.network = new VirtualNetwork({
      clock: this.clock,
      random: this.random.fork('network'),
      settings: options.network ?? {},
      note: this.#note,
    })
  }

  /** The seams of a process on a machine of its own, for tests that need but one. */
  get main(): VirtualProcess {
    this.#main ??= this.start('main')
    return this.#main
  }

  /** Starts a process on `host`; the machine and its disks outlive it. */
  start(host: string): VirtualProcess {
    const life = new Life(host)
    this.#processCount += 1
    const name = `${host}/${String(this.#processCount)}`
    const random = this.random.fork(name)
    return {
      host,
      life,
      random,
      clock: clockOf(life, this.clock),
      network: this.network.at(host, life),
      disk: this.disk(host).at(life),
      compute: this.#computeOf(life, name),
      kill: () => {
        life.end()
      },
    }
  }

  /** The disks of a machine. */
  disk(host = 'main'): VirtualDisk {
    let disk = this.#disks.get(host)
    if (disk === undefined) {
      const { diskLatencyMs, diskModel } = this.#options
      disk = new VirtualDisk({
        clock: this.clock,
        random: this.random.fork(`disk ${host}`),
        note: this.#note,
        ...(diskLatencyMs === undefined ? {} : { latencyMs: diskLatencyMs }),
        ...(diskModel === undefined ? {} : modelled(diskModel)),
      })
      this.#disks.set(host, disk)
    }
    return disk
  }

  /** Runs the world until `promise` settles, and gives its outcome. */
  drive<T>(promise: Promise<T>, withinMs?: number): Promise<T> {
    return this.clock.drive(promise, withinMs === undefined ? {} : { withinMs })
  }

  readonly #note = (line: string): void => {
    this.trace.note(line)
  }

  #computeOf(life: Life, name: string): World['compute'] {
    const compute = new VirtualCompute({
      clock: this.clock,
      random: this.random.fork(`compute ${name}`),
    })
    return {
      compress: (bytes) => life.heard(compute.compress(bytes)),
      uncompress: (block, sizeBytes) => life.heard(compute.uncompress(block, sizeBytes)),
    }
  }
}

function modelled({ model, lengthsOnly }: NonNullable<VirtualWorldOptions['diskModel']>) {
  return {
    model,
    newFile: (path: string) => (lengthsOnly.test(path) ? new LengthsOnlyFile() : new FileNode()),
  }
}

/** The clock as a process has it: its timers end with it. */
function clockOf(life: Life, clock: VirtualClock): Clock {
  const pending = new Set<Timer>()
  life.atEnd(() => {
    for (const timer of pending) timer.cancel()
  })
  const during = (set: (callback: () => void) => Timer, callback: () => void): Timer => {
    // Killed in the middle of a turn: what the rest of it sets never comes.
    if (!life.isAlive) return { cancel: () => undefined }
    const timer = set(() => {
      pending.delete(timer)
      callback()
    })
    pending.add(timer)
    return {
      cancel: () => {
        pending.delete(timer)
        timer.cancel()
      },
    }
  }
  return {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs(),
    setTimer: (delayMs, callback) => during((run) => clock.setTimer(delayMs, run), callback),
    setImmediate: (callback) => during((run) => clock.setImmediate(run), callback),
  }
}
