// What the soak looks at: samples of the worker and of the client that are never restarted, how the two
// halves of the run compare, and what must hold at each sample.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ShuffleEnvironment } from '../../client/index.ts'
import { scrape, type ClusterProcess } from '../support/cluster.ts'

export type Figures = Readonly<Record<string, number>>

interface Sample {
  readonly atMs: number
  readonly figures: Figures
}

export interface Comparison {
  readonly name: string
  readonly first: number
  readonly second: number
  /** The highest of the second half over the highest of the first. */
  readonly ratio: number
}

/** What a wait may be over its deadline before somebody runs: the machine may be busy. */
const lateMsMax = 10_000
const workerMemoryBytes = 64 * 1024 * 1024

export class SoakFigures {
  readonly #worker: ClusterProcess
  readonly #environment: ShuffleEnvironment
  readonly #samples: Sample[] = []
  /** What did not hold. */
  readonly wrong: string[] = []

  constructor(of: { readonly worker: ClusterProcess; readonly environment: ShuffleEnvironment }) {
    this.#worker = of.worker
    this.#environment = of.environment
  }

  get sampleCount(): number {
    return this.#samples.length
  }

  async sample(atMs: number): Promise<void> {
    global.gc?.()
    const metrics = await metricsOf(this.#worker.httpUrl)
    await this.#check(metrics)
    this.#samples.push({ atMs, figures: { ...this.#ofWorker(metrics), ...this.#ofClient() } })
  }

  compare(middleMs: number): readonly Comparison[] {
    const highest = (name: string, isFirst: boolean) =>
      this.#samples
        .filter(({ atMs }) => atMs < middleMs === isFirst)
        .reduce((most, { figures }) => Math.max(most, figures[name] ?? 0), 0)
    return Object.keys(this.#samples[0]?.figures ?? {}).map((name) => {
      const first = highest(name, true)
      const second = highest(name, false)
      const ratio = first === 0 ? (second === 0 ? 1 : Infinity) : second / first
      return { name, first, second, ratio }
    })
  }

  #ofWorker({ sums, series }: Metrics): Figures {
    return {
      ...ofProcess('worker', this.#worker.run?.pid ?? 0),
      'worker heap': sums.get('sluice_worker_heap_used_bytes') ?? NaN,
      'worker timers': sums.get('sluice_worker_timers') ?? NaN,
      'worker waiters': sums.get('sluice_worker_waiters') ?? NaN,
      'worker series': series,
    }
  }

  #ofClient(): Figures {
    return {
      ...ofProcess('client', process.pid),
      'client heap': process.memoryUsage().heapUsed,
      'client timers': process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
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

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/fd/${fd}`)
  } catch {
    return 'closed meanwhile'
  }
}
