// What the soak looks at: samples of the worker and of the client that are never restarted, how the two
// halves of the run compare, and what must hold at each sample.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ShuffleEnvironment } from '../../client/index.ts'
import { scrape, type ClusterProcess } from '../support/cluster.ts'

export type Figures = Readonly<Record<string, number>>

export interface Comparison {
  readonly name: string
  readonly first: number
  readonly second: number
  /** The highest of the second half over the highest of the first. */
  readonly ratio: number
}

/** Samples of the worker's heap, of which the lowest counts: between two collections it holds garbage. */
const heapSamples = 15

/** What a wait may be over its deadline before somebody runs: the machine may be busy. */
const lateMsMax = 10_000
const workerMemoryBytes = 64 * 1024 * 1024

export class SoakFigures {
  readonly #worker: ClusterProcess
  readonly #environment: ShuffleEnvironment
  /** The highest of each figure in the two halves; nothing that grows with the length of the run. */
  readonly #highest = { first: new Map<string, number>(), second: new Map<string, number>() }
  readonly #middleMs: number
  readonly #workerHeaps: number[] = []
  #sampleCount = 0
  /** What did not hold. */
  readonly wrong: string[] = []

  constructor(of: {
    readonly worker: ClusterProcess
    readonly environment: ShuffleEnvironment
    readonly middleMs: number
  }) {
    this.#worker = of.worker
    this.#middleMs = of.middleMs
    this.#environment = of.environment
  }

  get sampleCount(): number {
    return this.#sampleCount
  }

  async sample(atMs: number): Promise<void> {
    global.gc?.()
    const metrics = await metricsOf(this.#worker.httpUrl)
    await this.#check(metrics)
    this.#note(atMs, { ...this.#ofWorker(metrics), ...this.#ofClient() })
    this.#noteHeap(atMs, metrics.sums.get('sluice_worker_heap_used_bytes') ?? NaN)
    this.#sampleCount += 1
  }

  /** While the soak itself has no records in hand: what is left is the client's, and the harness's code. */
  sampleBetweenJobs(atMs: number): void {
    global.gc?.()
    this.#note(atMs, {
      'client heap': process.memoryUsage().heapUsed,
      'client timers': timerCount(),
    })
  }

  compare(): readonly Comparison[] {
    const { first: before, second: after } = this.#highest
    return [...before.keys()].map((name) => {
      const first = before.get(name) ?? 0
      const second = after.get(name) ?? 0
      const ratio = first === 0 ? (second === 0 ? 1 : Infinity) : second / first
      return { name, first, second, ratio }
    })
  }

  #note(atMs: number, figures: Figures): void {
    const highest = atMs < this.#middleMs ? this.#highest.first : this.#highest.second
    for (const [name, value] of Object.entries(figures)) {
      highest.set(name, Math.max(highest.get(name) ?? 0, value))
    }
  }

  /** Nobody can make the worker collect, as this process does; its heap is lowest just after it did. */
  #noteHeap(atMs: number, bytes: number): void {
    this.#workerHeaps.push(bytes)
    if (this.#workerHeaps.length < heapSamples) return
    this.#note(atMs, { 'worker heap': Math.min(...this.#workerHeaps) })
    this.#workerHeaps.length = 0
  }

  #ofWorker({ sums, series }: Metrics): Figures {
    return {
      ...ofProcess('worker', this.#worker.run?.pid ?? 0),
      'worker heap with garbage': sums.get('sluice_worker_heap_used_bytes') ?? NaN,
      'worker timers': sums.get('sluice_worker_timers') ?? NaN,
      'worker waiters': sums.get('sluice_worker_waiters') ?? NaN,
      'worker series': series,
    }
  }

  #ofClient(): Figures {
    return {
      ...ofProcess('client', process.pid),
      'client heap with its records': process.memoryUsage().heapUsed,
      'client timers of a job': timerCount(),
      'client waiters': this.#environment.statistics().waiters.length,
    }
  }

  async #check({ sums }: Metrics): Promise<void> {
    const used = sums.get('sluice_worker_memory_used_bytes') ?? NaN
    this.#expect(used <= workerMemoryBytes, `the worker uses ${String(used)} bytes of its memory`)
    for (const name of ['sluice_worker_credit_outstanding', 'sluice_worker_buffers_held']) {
      for (const [series, value] of sums) {
        if (series.startsWith(name)) this.#expect(value >= 0, `${series} is ${String(value)}`)
      }
    }
    const answer = await fetch(`${this.#worker.httpUrl}/v1/waiters`)
    const { waiters } = (await answer.json()) as { readonly waiters: readonly Wait[] }
    for (const wait of [...waiters, ...this.#environment.statistics().waiters]) {
      // JSON has no Infinity: null is a wait that something else bounds.
      const isLate = wait.remainingMs !== null && wait.remainingMs < -lateMsMax
      this.#expect(!isLate, `the wait for ${wait.name} outlived its deadline`)
    }
  }

  #expect(holds: boolean, what: string): void {
    if (!holds) this.wrong.push(what)
  }
}

interface Wait {
  readonly name: string
  readonly remainingMs: number | null
}

interface Metrics {
  readonly sums: ReadonlyMap<string, number>
  readonly series: number
}

async function metricsOf(url: string): Promise<Metrics> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const series = text.split('\n').filter((line) => /^[a-z]/.test(line)).length
  return { sums: await scrape(url), series }
}

function ofProcess(name: string, pid: number): Figures {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8')
  const links = readdirSync(`/proc/${String(pid)}/fd`).map((fd) => linkOf(pid, fd))
  return {
    [`${name} resident`]: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? NaN) * 1024,
    [`${name} threads`]: Number(/Threads:\s+(\d+)/.exec(status)?.[1] ?? NaN),
    [`${name} descriptors`]: links.length,
    [`${name} sockets`]: links.filter((link) => link.startsWith('socket:')).length,
  }
}

function timerCount(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/fd/${fd}`)
  } catch {
    return 'closed meanwhile'
  }
}
