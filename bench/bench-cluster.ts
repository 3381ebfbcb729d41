// The services that are measured: one manager and one worker, built JavaScript, each a process of its
// own with the loop probe in it.

import { rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChildService } from '../cli/child-service.ts'
import type { EnvironmentOptions } from '../client/index.ts'
import type { ClusterPlace } from './load-tasks.ts'
import { Probe, probeEnvironment } from './probe-report.ts'

export interface BenchClusterOptions {
  /** Empty; removed at the end. */
  readonly directory: string
  readonly workerArguments: readonly string[]
  /** As `--data-directories` takes it: `[SSD]`, or more, before the path. */
  readonly diskMark: string
  readonly profileDirectory: string | undefined
  readonly environmentOptions: Partial<EnvironmentOptions>
}

const clusterId = 'bench'
const readyTimeoutMs = 30_000

export class BenchCluster {
  readonly place: ClusterPlace
  readonly dataDirectory: string
  readonly manager: ChildService
  readonly worker: ChildService
  readonly managerProbe: Probe
  readonly workerProbe: Probe
  readonly #directory: string

  private constructor(options: BenchClusterOptions, manager: ChildService, worker: ChildService) {
    this.#directory = options.directory
    this.dataDirectory = path.join(options.directory, 'data')
    this.manager = manager
    this.worker = worker
    this.managerProbe = new Probe(pidOf(manager), path.join(options.directory, 'manager.probe'))
    this.workerProbe = new Probe(pidOf(worker), path.join(options.directory, 'worker.probe'))
    this.place = {
      managerUrl: manager.ready.url ?? '',
      clusterId,
      options: options.environmentOptions,
    }
  }

  static async start(options: BenchClusterOptions): Promise<BenchCluster> {
    const { directory, profileDirectory } = options
    await mkdir(directory, { recursive: true })
    const environment = (name: string) =>
      probeEnvironment(path.join(directory, `${name}.probe`), profileDirectory)
    const manager = await ChildService.start({
      argv: [
        'manager',
        '--port=0',
        `--state-directory=${path.join(directory, 'manager')}`,
        `--cluster-id=${clusterId}`,
        '--expected-workers=1',
        '--exit-with-parent',
        '--log-level=warn',
      ],
      environment: environment('manager'),
      onLog: report,
    })
    const worker = await ChildService.start({
      argv: [
        'worker',
        '--data-port=0',
        '--http-port=0',
        `--data-directories=${options.diskMark}${path.join(directory, 'data')}`,
        `--manager=${manager.ready.url ?? ''}`,
        `--cluster-id=${clusterId}`,
        '--drain-timeout=0ms',
        '--exit-with-parent',
        '--log-level=warn',
        ...options.workerArguments,
      ],
      environment: environment('worker'),
      onLog: report,
    })
    const cluster = new BenchCluster(options, manager, worker)
    await cluster.#untilReady()
    return cluster
  }

  get workerPid(): number {
    return pidOf(this.worker)
  }

  get managerPid(): number {
    return pidOf(this.manager)
  }

  /** The worker's counters, by their name with labels. */
  async counters(): Promise<ReadonlyMap<string, number>> {
    const answer = await fetch(`${this.#workerUrl}/metrics`)
    return samplesOf(await answer.text())
  }

  async stop(): Promise<void> {
    await this.worker.stop()
    await this.manager.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  get #workerUrl(): string {
    return `http://127.0.0.1:${String(this.worker.ready.httpPort)}`
  }

  async #untilReady(): Promise<void> {
    const deadlineMs = performance.now() + readyTimeoutMs
    while (performance.now() < deadlineMs) {
      const answer = await fetch(`${this.#workerUrl}/readyz`)
      await answer.arrayBuffer()
      if (answer.ok) return
      await sleep(10)
    }
    throw new Error('the worker did not register in time')
  }
}

/** Samples of a text of Prometheus, by name with labels. */
export function samplesOf(text: string): ReadonlyMap<string, number> {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' ')
    if (at > 0 && !line.startsWith('#')) samples.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return samples
}

function pidOf(service: ChildService): number {
  if (service.pid === undefined) throw new Error('a service has no process')
  return service.pid
}

/** What a service warns of belongs to the bench's output. */
function report(text: string): void {
  process.stderr.write(text)
}
