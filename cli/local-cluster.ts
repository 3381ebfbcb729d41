// A manager and workers on this machine, as processes that end with this one. Their data lie in a
// directory under the system's temporary one, which they remove themselves.

import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'

import { ChildService, type ReadyLine } from './child-service.ts'
import { starterDirectory } from './service-commands.ts'

export interface LocalClusterOptions {
  readonly workerCount: number
  /** `free` takes any; `default` those of the documentation, counted up for each worker. */
  readonly ports: 'free' | 'default'
  readonly clusterId: string
  /** More options of each worker. */
  readonly workerArguments?: readonly string[]
  /** Where the data go and stay; a temporary directory unless stated. */
  readonly directory?: string
  /** What the services log. */
  readonly onLog?: (text: string) => void
  /** Aborted while it starts: what there is of it is stopped, and `start` rejects. */
  readonly signal?: AbortSignal
}

const managerPort = 9700
const firstWorkerPort = 9710
/** Data port, HTTP port, and room to see which belong together. */
const portsPerWorker = 10
/** A registration takes milliseconds on an idle machine. */
const registrationTimeoutMs = 30_000
const registrationPollMs = 10

export class LocalCluster {
  readonly directory: string
  readonly manager: ChildService
  readonly workers: readonly ChildService[]
  readonly #isTemporary: boolean
  readonly #options: LocalClusterOptions

  private constructor(parts: {
    readonly directory: string
    readonly options: LocalClusterOptions
    readonly manager: ChildService
    readonly workers: readonly ChildService[]
    readonly isTemporary: boolean
  }) {
    this.directory = parts.directory
    this.manager = parts.manager
    this.workers = parts.workers
    this.#isTemporary = parts.isTemporary
    this.#options = parts.options
  }

  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const isTemporary = options.directory === undefined
    // Only a name: what makes it is the service that will also remove it.
    const directory =
      options.directory ?? path.join(tmpdir(), `sluice-${randomBytes(6).toString('hex')}`)
    const started: ChildService[] = []
    const start = async (argv: readonly string[], name: string) => {
      const service = await ChildService.start({
        argv,
        ...(isTemporary ? { temporaryDirectory: path.join(directory, name) } : {}),
        ...(options.onLog === undefined ? {} : { onLog: options.onLog }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      })
      started.push(service)
      return service
    }
    try {
      const manager = await start(managerArguments(options, directory), 'manager')
      const url = urlOf(manager.ready)
      const workers = await allOrError(
        Array.from({ length: options.workerCount }, (_, index) =>
          start(workerArguments(options, { directory, index, url }), `worker-${index}`),
        ),
      )
      await Promise.all(workers.map((worker) => untilRegistered(worker, options.signal)))
      return new LocalCluster({ directory, options, manager, workers, isTemporary })
    } catch (error) {
      await Promise.all(started.map((service) => service.stop()))
      if (isTemporary) rmSync(directory, { recursive: true, force: true })
      throw error
    }
  }

  /** A directory for its starter, removed with the cluster. Temporary clusters only. */
  get starterDirectory(): string {
    return path.join(this.directory, starterDirectory)
  }

  get managerUrl(): string {
    return urlOf(this.manager.ready)
  }

  /** The command that starts a worker of this cluster once more: its data, ports and own options. */
  restartCommand(worker: ChildService): string {
    const { dataPort, httpPort } = worker.ready
    const index = this.workers.indexOf(worker)
    return [
      'sluice worker',
      `--data-port=${dataPort ?? 0} --http-port=${httpPort ?? 0}`,
      `--data-directories=${dataDirectory(this.directory, index)}`,
      `--manager=${this.managerUrl} --cluster-id=${this.#options.clusterId}`,
      ...(this.#options.workerArguments ?? []),
    ].join(' ')
  }

  /** Stops workers, then the manager. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()))
    await this.manager.stop()
    if (this.#isTemporary) rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Until the manager knows the worker, so that the first look at the cluster shows all of it. */
async function untilRegistered(worker: ChildService, signal?: AbortSignal): Promise<void> {
  const url = `http://127.0.0.1:${worker.ready.httpPort}/readyz`
  const deadlineMs = performance.now() + registrationTimeoutMs
  // Whoever registers later still registers: the cluster is of use before.
  while (performance.now() < deadlineMs) {
    signal?.throwIfAborted()
    const isReady = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    )
    if (isReady) return
    await setTimeout(registrationPollMs)
  }
}

/** Waits for all, so that none is left behind when one fails. */
async function allOrError<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises)
  const failed = settled.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason as Error
  return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

function managerArguments(options: LocalClusterOptions, directory: string): readonly string[] {
  return [
    'manager',
    '--host=127.0.0.1',
    `--port=${options.ports === 'free' ? 0 : managerPort}`,
    `--state-directory=${path.join(directory, 'manager')}`,
    `--cluster-id=${options.clusterId}`,
    `--expected-workers=${options.workerCount}`,
    '--exit-with-parent',
    '--log-level=warn',
  ]
}

function dataDirectory(directory: string, index: number): string {
  return path.join(directory, `worker-${index}`)
}

function workerArguments(
  options: LocalClusterOptions,
  worker: { readonly directory: string; readonly index: number; readonly url: string },
): readonly string[] {
  const port = firstWorkerPort + worker.index * portsPerWorker
  const ports = options.ports === 'free' ? [0, 0] : [port, port + 1]
  return [
    'worker',
    '--bind-host=127.0.0.1',
    `--data-port=${ports[0] ?? 0}`,
    `--http-port=${ports[1] ?? 0}`,
    `--data-directories=${dataDirectory(worker.directory, worker.index)}`,
    `--manager=${worker.url}`,
    `--cluster-id=${options.clusterId}`,
    // The defaults are a server's; these let it start where a process may have few open files.
    '--connections-max=512',
    '--open-writes-max=1024',
    '--open-files-max=512',
    // Who ends a local cluster wants it to end.
    '--drain-timeout=0ms',
    '--exit-with-parent',
    '--log-level=warn',
    ...(options.workerArguments ?? []),
  ]
}

function urlOf({ url }: ReadyLine): string {
  return url ?? 'http://127.0.0.1:9700'
}
