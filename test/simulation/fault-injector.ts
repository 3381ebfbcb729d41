// Makes the faults of a plan happen, each for its time, and counts those that hit something.

import type { Logger } from '../../client/common/log.ts'
import type { ShuffleWorker } from '../../shuffle-worker/worker.ts'
import { deferred } from '../support/deferred.ts'
import type { FaultRule, InjectedFault, OperationKind } from '../support/virtual-disk-faults.ts'
import type { VirtualDisk } from '../support/virtual-disk.ts'
import type { VirtualLink } from '../support/virtual-link.ts'
import type { VirtualWorld } from '../support/virtual-world.ts'
import { directoriesOf, managerHost, type Cluster, type Member } from './cluster.ts'
import type { Coverage } from './coverage.ts'
import type { FaultKind, FaultPlan } from './fault-plan.ts'
import type { SeenMessage } from './frame-tap.ts'
import type { SimJob } from './job.ts'
import { Operator } from './operator.ts'
import type { SimProcess } from './process.ts'
import { Stranger, type StrangerTarget } from './stranger.ts'
import type { Truth } from './truth.ts'

export interface InjectorContext {
  readonly virtual: VirtualWorld
  readonly cluster: Cluster
  readonly jobs: () => readonly SimJob[]
  readonly truth: Truth
  readonly coverage: Coverage
  readonly note: (text: string) => void
  readonly find: (finding: string) => void
  readonly loggerOf: (host: string) => Logger
}

type Inject = (fault: FaultPlan) => void

/** What hung may answer late. */
const touchedAfterMs = 5_000
/** A disk is given up when it has failed for so long. */
const lookAgainMs = 12_000
const plentyBytes = 2 ** 40
const changing: readonly OperationKind[] = [
  'write',
  'rename',
  'unlink',
  'truncate',
  'sync',
  'syncDirectory',
  'makeDirectory',
]

export class FaultInjector {
  readonly #context: InjectorContext
  readonly #atMessage = new Map<number, (message: SeenMessage) => void>()
  readonly #undo = new Set<() => void>()
  readonly #atName = new Set<{ readonly pattern: RegExp; readonly strike: () => void }>()
  readonly #underWay = new Set<Promise<void>>()
  readonly #kinds: Readonly<Record<FaultKind, Inject>>
  /** Directories whose calls fail, hang or are slow, by `host path`, and until when that may show. */
  readonly #touched = new Map<string, number>()
  /** The last drain of a worker, until the worker is back in service. */
  readonly #drains = new Map<Member<ShuffleWorker>, Promise<unknown>>()
  #names = 0
  #isOver = false
  /** Faults that were tried, whether they hit anything or not. */
  count = 0
  /** Faults that hit something after a partition had been committed. */
  hitsAfterCommit = 0
  /** Until then a worker may still be started again. */
  restlessUntilMs = 0
  /** A living job master was replaced by another one. */
  hasReplaced = false
  /** Machines on which stored bytes were changed: DATA_CORRUPT may come from there. */
  readonly damagedHosts = new Set<string>()
  /** Machines on which committed data may be gone: PARTITION_NOT_FOUND may come from there. */
  readonly lostHosts = new Set<string>()
  /** Machines with a disk that has refused, or may have refused, what was asked of it. */
  readonly sickHosts = new Set<string>()
  /** Files of failed writes may stay until the next start. */
  hasBlockedDeletion = false

  constructor(context: InjectorContext) {
    this.#context = context
    this.#kinds = { ...this.#networkKinds(), ...this.#diskKinds(), ...this.#processKinds() }
  }

  inject(fault: FaultPlan): void {
    if (this.#isOver) return
    this.count += 1
    this.#context.note(
      `fault ${fault.kind} target ${String(fault.target)} after ${String(fault.after)} for ${String(fault.durationMs)} ms`,
    )
    this.#kinds[fault.kind](fault)
  }

  /** Whether something is, or was just now, wrong with the disk of a directory. */
  isDiskTouched(host: string, directory: string): boolean {
    const untilMs = this.#touched.get(`${host} ${directory}`)
    return untilMs !== undefined && this.#context.virtual.clock.nowMs() < untilMs
  }

  onMessage(message: SeenMessage): void {
    for (const waiting of this.#atName) {
      if (!waiting.pattern.test(message.name)) continue
      this.#atName.delete(waiting)
      this.#context.virtual.clock.schedule(0, waiting.strike)
    }
    const strike = this.#atMessage.get(message.number)
    if (strike === undefined) return
    this.#atMessage.delete(message.number)
    // Not within the call that sends it.
    this.#context.virtual.clock.schedule(0, () => {
      strike(message)
    })
  }

  /** When what the faults have begun has come to its end. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Everything that lasts is over, nothing more comes, and what is down is started. */
  healAll(): void {
    this.#isOver = true
    this.#atMessage.clear()
    this.#atName.clear()
    for (const undo of [...this.#undo]) undo()
    for (const worker of this.#context.cluster.workers)
      this.#disk(worker).stopAt(0, 'before', () => undefined)
    for (const member of this.#context.cluster.members) if (!member.process.isAlive) member.start()
  }

  #networkKinds() {
    const { network } = this.#context.virtual
    return {
      'link-cut': (fault) => {
        this.#withLink(fault, (link) => {
          link.cut()
        })
      },
      'link-cut-at-byte': (fault) => {
        this.#withLink(fault, (link) => {
          const side = fault.other % 2 === 0 ? 'client' : 'server'
          link.cutAfter(side, link[side].outgoing.sentBytes + fault.after)
        })
      },
      'link-cut-at-message': (fault) => {
        this.#onMessageNumber(fault, (message) => {
          message.cut()
        })
      },
      'link-silent': (fault) => {
        this.#withLink(fault, (link) => {
          if (fault.other % 3 === 0) {
            // One way only.
            link.client.outgoing.silence(true)
            this.#later(fault.durationMs, () => {
              link.client.outgoing.silence(false)
            })
            return
          }
          link.silence()
          // Some are never heard of again, as when a firewall forgets them.
          if (fault.other % 3 === 1) return
          this.#later(fault.durationMs, () => {
            link.silence(false)
          })
        })
      },
      'link-slow': (fault) => {
        this.#withLink(fault, (link) => {
          const bytesPerMs = 0.2 + (fault.other % 20)
          for (const side of [link.client, link.server]) side.outgoing.slow(bytesPerMs)
          this.#later(fault.durationMs, () => {
            for (const side of [link.client, link.server]) side.outgoing.slow(undefined)
          })
        })
      },
      'network-partition': (fault) => {
        this.#between(fault, (one, other) => {
          network.partition(one, other)
        })
      },
      'one-way-partition': (fault) => {
        this.#between(fault, (one, other) => {
          network.partitionOneWay(one, other)
        })
      },
      'connect-refused': (fault) => {
        const host = fault.other % 3 === 0 ? managerHost : this.#worker(fault).host
        this.#hit(fault)
        network.refuse(host)
        this.#later(fault.durationMs, () => {
          network.accept(host)
        })
      },
      'address-changed': (fault) => {
        const worker = this.#worker(fault)
        const { workers } = this.#context.cluster
        const stranger = workers[(workers.indexOf(worker) + 1) % workers.length]
        this.#names += 1
        const name = `${worker.host}-moved-${String(this.#names)}`
        this.#hit(fault)
        this.#context.cluster.advertised.set(worker.host, name)
        network.setName(name, worker.host)
        // Who still dials the old name finds another worker there, or nobody.
        network.setName(worker.host, stranger === worker ? managerHost : stranger?.host)
        this.#kill(worker, fault)
      },
    } satisfies Partial<Record<FaultKind, Inject>>
  }

  #diskKinds() {
    return {
      'disk-error': (fault) => {
        if (fault.isExact === true) {
          this.#rule(fault, { fault: { kind: 'error', code: 'EIO' }, times: 1 })
          return
        }
        const operation = pickOne(
          [undefined, 'write', 'read', 'rename', 'open', 'sync', 'unlink'] as const,
          fault.other,
        )
        this.#rule(fault, {
          fault: { kind: 'error', code: 'EIO' },
          ...(operation === undefined ? {} : { operation }),
          times: 1 + (fault.other % 7),
        })
      },
      'disk-short-write': (fault) => {
        const code = fault.other % 2 === 0 ? 'EIO' : 'ENOSPC'
        this.#rule(fault, { fault: { kind: 'short', code }, operation: 'write', times: 1 })
      },
      'disk-short-read': (fault) => {
        // What is missing may be taken for damage, and then it is lost.
        this.damagedHosts.add(this.#worker(fault).host)
        const times = 1 + (fault.other % 3)
        this.#rule(
          { ...fault, after: fault.after % 4 },
          { fault: { kind: 'short-read' }, operation: 'read', times },
        )
      },
      'disk-slow': (fault) => {
        this.#rule(fault, { fault: { kind: 'slow', delayMs: 1 + (fault.other % 800) } })
      },
      'disk-hung': (fault) => {
        this.#rule(fault, { fault: { kind: 'hang' } })
      },
      'disk-full': (fault) => {
        this.#hit(fault)
        this.#fill(this.#worker(fault), fault, [this.#directory(fault).directory])
      },
      'disk-full-at-start': (fault) => {
        const worker = this.#worker(fault)
        const { directory } = this.#directory(fault)
        const all = directoriesOf(this.#context.cluster.context.plan)
        this.#hit(fault)
        this.#kill(worker, { ...fault, durationMs: 100 })
        this.#fill(worker, { ...fault, after: 1 }, fault.other % 3 === 0 ? [directory] : all)
      },
      'disk-read-only': (fault) => {
        this.#rule(fault, { fault: { kind: 'error', code: 'EROFS' }, operation: changing })
      },
      'disk-close-error': (fault) => {
        // What had not reached the disk is gone: of a file that is being written this is no loss yet.
        const { directory } = this.#directory(fault)
        const isOfWrite = fault.other % 3 !== 0
        this.#rule(
          { ...fault, after: fault.after % (isOfWrite ? 2 : 6) },
          {
            fault: { kind: 'error', code: 'EIO', losesContent: isOfWrite },
            operation: 'close',
            times: 1 + (fault.other % 3),
            ...(isOfWrite ? { path: new RegExp(`^${directory}/.*partial$`) } : {}),
          },
        )
      },
      'disk-bit-flip': (fault) => {
        this.#flipBit(fault)
      },
    } satisfies Partial<Record<FaultKind, Inject>>
  }

  #processKinds() {
    const { cluster } = this.#context
    return {
      'worker-killed': (fault) => {
        this.#hit(fault)
        this.#kill(this.#worker(fault), fault)
      },
      'worker-killed-at-operation': (fault) => {
        const worker = this.#worker(fault)
        this.#atOperation(worker, fault, () => {
          this.#hit(fault)
          this.#kill(worker, fault)
        })
      },
      'worker-killed-at-message': (fault) => {
        this.#onMessageNumber(fault, () => {
          this.#kill(this.#worker(fault), fault)
        })
      },
      'worker-killed-twice': (fault) => {
        const worker = this.#worker(fault)
        this.#kill(worker, { ...fault, durationMs: 100 })
        // The second time while it recovers.
        this.#atOperation(worker, { ...fault, after: 1 + (fault.after % 40) }, () => {
          this.#hit(fault)
          this.#kill(worker, { ...fault, durationMs: 100 })
        })
      },
      'worker-stopped': (fault) => {
        const worker = this.#worker(fault)
        const { running, process } = worker
        if (running === undefined || process.isPaused) return
        this.#hit(fault)
        this.#work(async () => {
          await Promise.race([running.stop(), process.ended])
          // Whoever supervises it starts it again; at once when the faults are over.
          if (worker.process === process) worker.kill(this.#isOver ? 0 : fault.durationMs)
        })
      },
      'worker-power-loss': (fault) => {
        const worker = this.#worker(fault)
        this.#hit(fault)
        if (cluster.context.plan.durability === 'none') this.lostHosts.add(this.#worker(fault).host)
        this.#kill(worker, fault)
        this.#disk(worker).crash(fault.other % 3 === 0 ? 'drop' : 'random')
      },
      'worker-paused': (fault) => {
        this.#pause(this.#worker(fault).process, fault)
      },
      'worker-wiped': (fault) => {
        const worker = this.#worker(fault)
        this.#hit(fault)
        this.lostHosts.add(this.#worker(fault).host)
        this.#kill(worker, fault)
        this.#disk(worker).wipe()
      },
      'manager-killed': (fault) => {
        this.#hit(fault)
        this.#kill(cluster.manager, fault)
      },
      'manager-killed-at-message': (fault) => {
        this.#onMessageNumber(fault, () => {
          this.#kill(cluster.manager, fault)
        })
      },
      'manager-killed-after-release': (fault) => {
        this.#onMessageNamed(/^HTTP answer POST .*release 200$/, () => {
          this.#hit(fault)
          this.#kill(cluster.manager, fault)
        })
      },
      'manager-paused': (fault) => {
        this.#pause(cluster.manager.process, fault)
      },
      'manager-and-worker-killed': (fault) => {
        this.#hit(fault)
        this.#kill(cluster.manager, fault)
        this.#kill(this.#worker(fault), { ...fault, durationMs: fault.durationMs * 0.7 })
      },
      'task-host-killed': (fault) => {
        this.#hit(fault)
        this.#kill(pickOne(cluster.taskHosts, fault.target), fault)
      },
      'task-host-paused': (fault) => {
        this.#pause(pickOne(cluster.taskHosts, fault.target).process, fault)
      },
      'master-killed': (fault) => {
        const { process } = pickOne(this.#context.jobs(), fault.target)
        if (process?.isAlive !== true) return
        this.#hit(fault)
        this.#context.note(`kill ${process.host}`)
        process.kill()
      },
      'master-paused': (fault) => {
        this.#pause(pickOne(this.#context.jobs(), fault.target).process, fault)
      },
      'master-replaced': (fault) => {
        if (!pickOne(this.#context.jobs(), fault.target).replaceMaster()) return
        this.hasReplaced = true
        this.#hit(fault)
      },
      'process-killed-at-event': (fault) => {
        this.#context.virtual.clock.afterEvents(fault.after, () => {
          this.#killAny(fault)
        })
      },
      'process-killed-at-timer': (fault) => {
        this.#context.virtual.clock.beforeTimer(fault.after, () => {
          this.#killAny(fault)
        })
      },
      'worker-drained': (fault) => {
        const worker = this.#worker(fault)
        if (worker.running === undefined) return
        this.#hit(fault)
        this.#drain(worker, worker.running.workerId, fault)
      },
      stranger: (fault) => {
        const worker = this.#worker(fault)
        const { running } = worker
        if (!worker.isUp || running === undefined) return
        this.#hit(fault)
        const jobName = pickOne(this.#context.jobs(), fault.target).plan.name
        this.#meetStranger(fault, { host: worker.host, worker: running, jobName })
      },
      'wall-clock-jump': (fault) => {
        const day = 86_400_000
        const byMs = (fault.other % 2 === 0 ? 1 : -1) * fault.after * (day / 256)
        const { process } = pickOne([cluster.manager, ...cluster.workers], fault.target)
        this.#hit(fault)
        process.jumpWall(byMs)
      },
    } satisfies Partial<Record<FaultKind, Inject>>
  }

  #hit(fault: FaultPlan): void {
    this.#context.coverage.fault(fault.kind)
    if (this.#context.truth.partitionsCommitted > 0) this.hitsAfterCommit += 1
  }

  /** One operator after another: two that want the opposite of one worker would ask for ever. */
  #drain(worker: Member<ShuffleWorker>, workerId: string, fault: FaultPlan): void {
    const { cluster, loggerOf, find } = this.#context
    this.#names += 1
    const name = `operator-${String(this.#names)}`
    const operator = new Operator(cluster.context, { name, logger: loggerOf(name) })
    const before = this.#drains.get(worker)
    const over = deferred<undefined>()
    this.#drains.set(worker, over.promise)
    const drain = async (): Promise<void> => {
      await before
      await operator.setService(worker, workerId, 'draining')
    }
    const done = drain()
    this.#later(fault.durationMs, () => {
      this.#work(async () => {
        await done
        const isTaken = await operator.setService(worker, workerId, 'serving')
        await operator.close()
        over.resolve(undefined)
        if (!isTaken) find(`${workerId} could not be put back into service`)
      })
    })
  }

  #meetStranger(fault: FaultPlan, target: StrangerTarget): void {
    const { cluster, loggerOf, find, coverage } = this.#context
    this.#names += 1
    const name = `stranger-${String(this.#names)}`
    const stranger = new Stranger(cluster.context, { name, logger: loggerOf(name) })
    this.#work(async () => {
      const { code, complaint } = await stranger.perform(fault.other, target)
      stranger.process.kill()
      if (code !== undefined) coverage.reception(code)
      if (complaint !== undefined) find(complaint)
    })
  }

  /** Something that takes time; {@link settled} waits for it. */
  #work(run: () => Promise<void>): void {
    const work = run().catch((error: unknown) => {
      this.#context.find(`a fault failed itself: ${String(error)}`)
    })
    this.#underWay.add(work)
    void work.then(() => this.#underWay.delete(work))
  }

  #hosts(): readonly string[] {
    const { cluster, jobs } = this.#context
    return [
      ...cluster.members.map(({ host }) => host),
      ...jobs().map(({ masterHost }) => masterHost),
    ]
  }

  #worker(fault: FaultPlan) {
    return pickOne(this.#context.cluster.workers, fault.target)
  }

  #disk(worker: Member<unknown>): VirtualDisk {
    return this.#context.virtual.disk(worker.host)
  }

  #directory(fault: FaultPlan): { readonly disk: VirtualDisk; readonly directory: string } {
    const directories = directoriesOf(this.#context.cluster.context.plan)
    return {
      disk: this.#disk(this.#worker(fault)),
      directory: pickOne(directories, fault.other),
    }
  }

  /** Between two machines, for a time. */
  #between(fault: FaultPlan, act: (one: string, other: string) => void): void {
    const { network } = this.#context.virtual
    const hosts = this.#hosts()
    const one = hosts[fault.target % hosts.length] ?? managerHost
    const other = hosts[fault.other % hosts.length] ?? managerHost
    if (one === other) return
    this.#hit(fault)
    this.#context.note(`  ${one} and ${other}`)
    act(one, other)
    this.#later(fault.durationMs, () => {
      network.heal(one, other)
    })
  }

  #withLink(fault: FaultPlan, act: (link: VirtualLink) => void): void {
    const { links } = this.#context.virtual.network
    if (links.length === 0) return
    const link = pickOne(links, fault.target)
    this.#hit(fault)
    this.#context.note(`  link ${link.hosts.join(' > ')}`)
    act(link)
  }

  #onMessageNumber(fault: FaultPlan, strike: (message: SeenMessage) => void): void {
    this.#atMessage.set(this.#context.cluster.context.tap.count + fault.after, (message) => {
      this.#hit(fault)
      this.#context.note(`  at message ${String(message.number)} ${message.name}`)
      strike(message)
    })
  }

  #onMessageNamed(pattern: RegExp, strike: () => void): void {
    this.#atName.add({ pattern, strike })
  }

  #atOperation(worker: Member<unknown>, fault: FaultPlan, strike: () => void): void {
    const disk = this.#disk(worker)
    const when = fault.other % 2 === 0 ? 'before' : 'after'
    disk.stopAt(disk.operationCount + fault.after, when, strike)
  }

  /** What has died in mid-operation must not stay half dead: it is killed for some time. */
  #kill(member: Member<unknown>, fault: FaultPlan): void {
    member.kill(fault.durationMs)
  }

  #killAny(fault: FaultPlan): void {
    if (this.#isOver) return
    this.#hit(fault)
    this.#kill(pickOne(this.#context.cluster.members, fault.target), fault)
  }

  #pause(process: SimProcess | undefined, fault: FaultPlan): void {
    if (process?.isAlive !== true || process.isPaused) return
    const others = this.#hosts().filter((host) => host !== process.host)
    this.#hit(fault)
    this.#context.note(`  pause ${process.host}`)
    process.pause(others)
    this.#later(fault.durationMs, () => {
      process.resume(others)
    })
  }

  #rule(fault: FaultPlan, rule: FaultRule): void {
    const { disk, directory } = this.#directory(fault)
    const worker = this.#worker(fault)
    // A disk that fails for long enough has lost what is on it.
    this.lostHosts.add(worker.host)
    this.sickHosts.add(worker.host)
    this.hasBlockedDeletion = true
    const name = `${worker.host} ${directory}`
    const untilMs = this.#context.virtual.clock.nowMs() + fault.durationMs + touchedAfterMs
    // One fault may end before another that began earlier.
    this.#touched.set(name, Math.max(untilMs, this.#touched.get(name) ?? 0))
    const injected: InjectedFault = disk.inject({
      path: directory,
      after: fault.isExact === true ? fault.after - 1 : fault.after % 16,
      ...rule,
    })
    this.#later(fault.durationMs, () => {
      if (injected.hits > 0) this.#hit(fault)
      injected.remove()
      disk.releaseHung()
      this.#replaceFailedDisk(worker)
    })
  }

  /** A directory that was given up comes back with the next start: an operator sees to it. */
  #replaceFailedDisk(worker: Member<unknown>): void {
    const { clock } = this.#context.virtual
    const look = () => {
      if (!worker.isUp) return
      const { store } = worker.running as { store: { directories: readonly { health: string }[] } }
      if (store.directories.every(({ health }) => health !== 'failed')) return
      this.#context.note(`  a directory of ${worker.host} had failed`)
      worker.kill(500)
    }
    look()
    clock.schedule(lookAgainMs, look)
    this.restlessUntilMs = clock.nowMs() + lookAgainMs + 1
  }

  /** Leaves little room in directories, for a time. */
  #fill(worker: Member<unknown>, fault: FaultPlan, directories: readonly string[]): void {
    const disk = this.#disk(worker)
    this.sickHosts.add(worker.host)
    for (const directory of directories) {
      const used = disk
        .filesBelow(directory)
        .reduce((sum, path) => sum + (disk.contentOf(path)?.byteLength ?? 0), 0)
      disk.setCapacity(directory, used + fault.after * 64)
      this.#later(fault.durationMs, () => {
        disk.setCapacity(directory, plentyBytes)
      })
    }
  }

  #flipBit(fault: FaultPlan): void {
    const disk = this.#disk(this.#worker(fault))
    const paths = disk.filesBelow('/').filter((path) => /\.(data|segment)$|journal/.test(path))
    const path = paths[fault.other % Math.max(1, paths.length)]
    const content = path === undefined ? undefined : disk.contentOf(path)
    if (path === undefined || content === undefined || content.byteLength === 0) return
    this.#hit(fault)
    this.damagedHosts.add(this.#worker(fault).host)
    this.lostHosts.add(this.#worker(fault).host)
    const at = Math.floor((fault.after / 256) * content.byteLength) % content.byteLength
    this.#context.note(`  ${path} byte ${String(at)} of ${String(content.byteLength)}`)
    disk.flipBits(path, at, 1 << (fault.other & 7))
  }

  #later(delayMs: number, undo: () => void): void {
    const once = () => {
      if (this.#undo.delete(once)) undo()
    }
    this.#undo.add(once)
    this.#context.virtual.clock.schedule(delayMs, once)
  }
}

function pickOne<T>(from: readonly T[], number: number): T {
  return from[number % from.length] as T
}
