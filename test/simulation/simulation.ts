// One seed: a cluster, its jobs and its faults, from the first start to the last stop, and what was
// found wrong on the way.

import type { LogFields, Logger } from '../../client/common/log.ts'
import { VirtualRandom } from '../support/virtual-random.ts'
import { VirtualWorld } from '../support/virtual-world.ts'
import { Checker } from './checker.ts'
import { Cluster, times } from './cluster.ts'
import { Coverage } from './coverage.ts'
import { FaultInjector } from './fault-injector.ts'
import { FrameTap, type SeenMessage } from './frame-tap.ts'
import { textOf, SimJob, type ErrorPlace } from './job.ts'
import { Judge } from './judge.ts'
import { drawPlan, type Plan, type PlanOptions } from './plan.ts'
import { Truth } from './truth.ts'

export interface SimulationResult {
  readonly seed: number
  readonly findings: readonly string[]
  readonly digest: string
  readonly events: readonly string[]
  readonly figures: Figures
  readonly coverage: Coverage
}

export interface Figures {
  readonly jobs: number
  readonly records: number
  readonly partitions: number
  readonly messages: number
  readonly faultsHit: number
  /** Of these, those after the first partition had been committed. */
  readonly faultsAfterCommit: number
  readonly virtualMs: number
}

export interface SimulationOptions extends PlanOptions {
  /** Called with each line of the story as it happens. */
  readonly onEvent?: (line: string) => void
  /** Every message and disk call too. */
  readonly isVerbose?: boolean
}

/** Faults are over by then; what still does not end has been forgotten. */
const jobsWithinMs = 300_000
/** In which lists converge, released data goes and idle connections close. */
const quietMs = 75_000
const lookEveryMs = 1_000
/** Two heartbeats and more. */
const stayMs = 5_000
const patientEvery = 100
const shortQuietMs = 8_000
const eventsKept = 400

export async function simulate(
  seed: number,
  options: SimulationOptions = {},
): Promise<SimulationResult> {
  const plan = drawPlan(new VirtualRandom(`plan ${String(seed)}`), options)
  return new Simulation(seed, plan, options).run()
}

export class Simulation {
  readonly seed: number
  readonly plan: Plan
  readonly virtual: VirtualWorld
  readonly cluster: Cluster
  readonly jobs: readonly SimJob[]
  readonly truth = new Truth()
  readonly coverage = new Coverage()
  readonly tap: FrameTap
  /** Timers that had run when the jobs were done. */
  timersInJobs = 0
  readonly #options: SimulationOptions
  readonly #judge: Judge
  readonly #checker: Checker
  readonly #injector: FaultInjector
  readonly #findings = new Set<string>()
  readonly #events: string[] = []

  constructor(seed: number, plan: Plan, options: SimulationOptions) {
    this.seed = seed
    this.plan = plan
    this.#options = options
    const { chunkBytesMax, latencyMaxMs } = plan.cluster
    this.virtual = new VirtualWorld({
      seed,
      network: {
        latencyMs: [0.05, latencyMaxMs],
        chunking: chunkBytesMax === 0 ? 'random' : { maxBytes: chunkBytesMax },
      },
    })
    this.tap = new FrameTap((message) => {
      this.#onMessage(message)
    })
    this.cluster = new Cluster({
      virtual: this.virtual,
      tap: this.tap,
      plan: plan.cluster,
      logger: (host) => this.#loggerOf(host, {}),
      note: (text) => {
        this.note(text)
      },
    })
    this.#injector = new FaultInjector({
      virtual: this.virtual,
      cluster: this.cluster,
      jobs: () => this.jobs,
      truth: this.truth,
      coverage: this.coverage,
      note: (text) => {
        this.note(text)
      },
      find: (finding) => {
        this.find(finding)
      },
      loggerOf: (host) => this.#loggerOf(host, {}),
    })
    this.#judge = new Judge(plan, this.#injector, this.truth)
    this.#checker = new Checker({
      cluster: this.cluster,
      jobs: () => this.jobs,
      injector: this.#injector,
      truth: this.truth,
      logger: this.#loggerOf('watcher', {}),
    })
    this.jobs = plan.jobs.map(
      (jobPlan) =>
        new SimJob({
          cluster: this.cluster,
          plan: jobPlan,
          random: this.virtual.random.fork(jobPlan.name),
          truth: this.truth,
          note: (text) => {
            this.note(text)
          },
          onError: (error, place) => {
            this.#onError(error, place)
          },
          onFinding: (finding) => {
            this.find(finding)
          },
        }),
    )
  }

  async run(): Promise<SimulationResult> {
    const onStray = (error: unknown) => {
      this.find(`an error that nobody caught: ${textOf(error)} ${(error as Error).stack ?? ''}`)
    }
    process.on('unhandledRejection', onStray)
    process.on('uncaughtException', onStray)
    try {
      await this.#story()
    } catch (error) {
      this.find(`the simulation itself failed: ${textOf(error)} ${(error as Error).stack ?? ''}`)
    } finally {
      await this.#stopEverything()
      process.off('unhandledRejection', onStray)
      process.off('uncaughtException', onStray)
    }
    this.coverage.pair()
    return {
      seed: this.seed,
      findings: [...this.#findings],
      digest: this.virtual.trace.digest(),
      events: this.#events.slice(-eventsKept),
      coverage: this.coverage,
      figures: {
        jobs: this.jobs.length,
        records: this.truth.recordsDelivered,
        partitions: this.truth.partitionsCommitted,
        messages: this.tap.count,
        faultsHit: this.coverage.faultsHit,
        faultsAfterCommit: this.#injector.hitsAfterCommit,
        virtualMs: this.virtual.clock.nowMs(),
      },
    }
  }

  note(text: string): void {
    const line = `${this.virtual.clock.nowMs().toFixed(3).padStart(10)} ${text}`
    this.virtual.trace.note(line)
    this.#events.push(line)
    if (this.#events.length > 2 * eventsKept) this.#events.splice(0, eventsKept)
    this.#options.onEvent?.(line)
  }

  find(finding: string): void {
    if (this.#findings.has(finding)) return
    this.#findings.add(finding)
    this.note(`FINDING ${finding}`)
  }

  async #story(): Promise<void> {
    const { clock } = this.virtual
    this.cluster.start()
    for (const fault of this.plan.faults) {
      clock.schedule(fault.atMs, () => {
        this.#injector.inject(fault)
      })
    }
    await this.#jobsEnd()
    this.timersInJobs = clock.timersRan
    if (this.#findings.size > 0) return
    this.#injector.healAll()
    await this.virtual.drive(this.#injector.settled(), 120_000)
    // A job whose master has died is released when it has been silent for long enough.
    const isOneAbandoned = this.jobs.some((job) => job.isAbandoned)
    await this.#quiet(isOneAbandoned ? quietMs + times.jobTimeoutMs : quietMs, () =>
      this.#checker.disagreements(),
    )
    if (this.#findings.size > 0) return
    for (const job of this.jobs) await this.virtual.drive(job.unregister(), 60_000)
    await this.#quiet(quietMs, () => [...this.#checker.leftovers()])
    if (this.#findings.size === 0) await this.#closeEverything()
  }

  /**
   * Lets time pass until nothing is wrong any more, and then goes on for a while, in which it must stay
   * so: what is still under way must not undo it. Some seeds wait the whole time in any case.
   */
  async #quiet(
    withinMs: number,
    look: () => readonly string[] | Promise<readonly string[]>,
  ): Promise<void> {
    const { clock } = this.virtual
    const endMs = clock.nowMs() + withinMs
    let wrong: readonly string[] = ['nobody has looked']
    const isRestless = () => clock.nowMs() < this.#injector.restlessUntilMs
    while ((wrong.length > 0 || isRestless()) && clock.nowMs() < endMs) {
      await clock.advance(lookEveryMs)
      wrong = await look()
    }
    if (wrong.length === 0) {
      const isPatient = this.seed % patientEvery === 0
      await clock.advance(isPatient ? Math.max(stayMs, endMs - clock.nowMs()) : stayMs)
      wrong = await look()
    }
    for (const each of wrong) this.find(each)
    for (const each of this.#checker.broken()) this.find(each)
  }

  async #jobsEnd(): Promise<void> {
    const { clock } = this.virtual
    const jobs = { areDone: false }
    const all = Promise.all(
      this.jobs.map(async (job) => {
        try {
          await job.run()
        } catch (error) {
          this.find(`${job.plan.name} failed: ${textOf(error)}`)
        }
      }),
    ).then(() => {
      jobs.areDone = true
    })
    while (!jobs.areDone && clock.nowMs() < jobsWithinMs && this.#findings.size === 0) {
      await clock.advance(100)
      for (const each of this.#checker.broken()) this.find(each)
    }
    if (!jobs.areDone && this.#findings.size === 0) {
      this.find(`jobs hang: ${this.jobs.map((job) => job.describe()).join(' | ')}`)
      for (const host of this.cluster.taskHosts) {
        this.note(`${host.host} ${JSON.stringify(host.running?.statistics())}`)
      }
      return
    }
    void all
  }

  async #closeEverything(): Promise<void> {
    const { clock } = this.virtual
    for (const member of this.cluster.members) member.isWanted = false
    const close = async () => {
      for (const job of this.jobs) await job.close()
      for (const host of this.cluster.taskHosts) if (host.isUp) await host.running!.close()
      for (const worker of this.cluster.workers) if (worker.isUp) await worker.running!.stop()
      if (this.cluster.manager.isUp) await this.cluster.manager.running!.stop()
    }
    await this.virtual.drive(close(), 120_000)
    await clock.advance(shortQuietMs)
    for (const each of this.#checker.remains()) this.find(each)
  }

  async #stopEverything(): Promise<void> {
    for (const member of this.cluster.members) {
      member.isWanted = false
      member.process.kill()
    }
    for (const job of this.jobs) for (const process of job.processes) process.kill()
    this.tap.destroyStreams()
    await this.virtual.clock.settle()
  }

  #onMessage(message: SeenMessage): void {
    this.coverage.message(message.name)
    if (message.code !== undefined) this.coverage.error(message.code)
    const { number, name, from, to, channelId, bytes, code } = message
    this.virtual.trace.note(`${String(number)} ${from} ${to} ${name} ${String(channelId)}`)
    if (this.#options.isVerbose === true) {
      this.#options.onEvent?.(
        `${this.virtual.clock.nowMs().toFixed(3).padStart(10)}   ${from} > ${to} ${name} ${String(channelId)} ${String(bytes)} ${code ?? ''}`,
      )
    }
    this.#injector.onMessage(message)
  }

  #onError(error: unknown, place: ErrorPlace): void {
    const code = (error as { readonly code?: string }).code
    if (code !== undefined) this.coverage.error(code)
    this.note(`error ${place.during} of ${place.job}: ${textOf(error)}`)
    const complaint = this.#judge.complaintAbout(error, place)
    if (complaint !== undefined) this.find(complaint)
  }

  #loggerOf(host: string, fields: LogFields): Logger {
    const take = (level: string, more: LogFields, message: string) => {
      const all = { ...fields, ...more }
      const line = `${host} ${level} ${message} ${JSON.stringify(all, errorsAsText)}`
      if (level !== 'debug') this.note(line)
      else if (this.#options.isVerbose === true) this.#options.onEvent?.(line)
      const code = all['code']
      if (typeof code === 'string') this.coverage.error(code)
      if (!this.#judge.isLogBad({ level, message, fields: all }, host)) return
      this.find(line)
      // Where in the code is nothing that another process must agree on.
      for (const value of Object.values(all)) {
        if (value instanceof Error) this.#options.onEvent?.(value.stack ?? '')
      }
    }
    return {
      debug: (more, message) => {
        take('debug', more, message)
      },
      info: (more, message) => {
        take('info', more, message)
      },
      warn: (more, message) => {
        take('warn', more, message)
      },
      error: (more, message) => {
        take('error', more, message)
      },
      child: (more) => this.#loggerOf(host, { ...fields, ...more }),
    }
  }
}

function errorsAsText(_name: string, value: unknown): unknown {
  return value instanceof Error ? String(value) : value
}
