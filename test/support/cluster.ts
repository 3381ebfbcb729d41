// A cluster of real processes for the end-to-end suite: a manager and workers of the built `sluice`
// command on free ports, with their data in a temporary directory. Each process can be killed,
// stopped and started again with the data and the ports that it had.

import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const repositoryRoot = resolve(import.meta.dirname, '../..')
export const sluiceMain = join(repositoryRoot, 'dist/cli/main.js')

/** A deadline for anything a test waits for; generous, because machines are noisy. */
export const waitMs = 60_000

/** Polls `condition` until it gives something other than undefined or false. */
export async function until<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = waitMs,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== false) return value
    if (performance.now() > deadline) throw new Error(`${what}: not within ${String(timeoutMs)} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export interface FinishedProcess {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A child process with all it printed. */
export class ChildRun {
  readonly child: ChildProcess
  readonly finished: Promise<FinishedProcess>
  stdout = ''
  stderr = ''

  constructor(command: string, args: readonly string[], options: RunOptions = {}) {
    this.child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      // Enough threads for a worker's file calls: else it starts itself once more, and a kill hits two.
      env: { UV_THREADPOOL_SIZE: '16', ...process.env, ...options.env },
      cwd: options.cwd ?? repositoryRoot,
      detached: options.detached ?? false,
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.finished = new Promise((resolve, reject) => {
      this.child.once('error', reject)
      this.child.once('close', (code, signal) => {
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr })
      })
    })
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('the process did not start')
    return this.child.pid
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<FinishedProcess> {
    if (this.isRunning) this.child.kill(signal)
    return await this.finished
  }
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly detached?: boolean
}

/** Runs `sluice` to its end. */
export async function sluice(
  args: readonly string[],
  options: RunOptions = {},
): Promise<FinishedProcess> {
  const run = startSluice(args, options)
  run.child.stdin?.end()
  return await run.finished
}

export function startSluice(args: readonly string[], options: RunOptions = {}): ChildRun {
  return new ChildRun(process.execPath, [sluiceMain, ...args], options)
}

export interface ReadyLine {
  readonly role: string
  readonly url?: string
  readonly workerId?: string
  readonly dataPort?: number
  readonly httpPort?: number
}

/** One role of the cluster: the process that runs now, and how to start it again. */
export class ClusterProcess {
  readonly #args: string[]
  #pinned: readonly string[]
  run: ChildRun | undefined
  ready: ReadyLine | undefined

  constructor(args: readonly string[]) {
    this.#args = [...args]
    this.#pinned =
      args[0] === 'manager' ? ['--port', '0'] : ['--data-port', '0', '--http-port', '0']
  }

  /** For what is known only when others run. */
  addArguments(args: readonly string[]): void {
    this.#args.push(...args)
  }

  /** Starts it, on the ports that it had before, if it ran before. */
  async start(): Promise<void> {
    const run = startSluice([...this.#args, ...this.#pinned])
    this.run = run
    this.ready = await until(`ready line of ${this.#args.join(' ')}`, () => {
      if (!run.isRunning) throw new Error(`exited at start:\n${run.stderr.slice(-4000)}`)
      const line = /^\{.*\}$/m.exec(run.stdout)
      return line === null ? undefined : (JSON.parse(line[0]) as ReadyLine)
    })
    this.#pinned = pinnedPorts(this.ready)
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.run?.kill(signal)
  }

  signal(signal: NodeJS.Signals): void {
    this.run?.child.kill(signal)
  }

  get httpUrl(): string {
    const ready = this.ready
    if (ready?.url !== undefined) return ready.url
    return `http://127.0.0.1:${String(ready?.httpPort)}`
  }
}

function pinnedPorts(ready: ReadyLine): readonly string[] {
  if (ready.url !== undefined) return ['--port', new URL(ready.url).port]
  return ['--data-port', String(ready.dataPort), '--http-port', String(ready.httpPort)]
}

export interface ClusterSpec {
  readonly workers: number
  readonly managerOptions?: readonly string[]
  readonly workerOptions?: readonly string[]
  readonly token?: string
}

export class TestCluster implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  readonly manager: ClusterProcess
  readonly workers: readonly ClusterProcess[]
  readonly #spec: ClusterSpec

  constructor(spec: ClusterSpec) {
    this.#spec = spec
    this.manager = new ClusterProcess([
      'manager',
      '--host=127.0.0.1',
      '--state-directory',
      join(this.directory, 'manager'),
      '--expected-workers',
      String(spec.workers),
      ...this.#access(),
      ...(spec.managerOptions ?? []),
    ])
    this.workers = Array.from(
      { length: spec.workers },
      (_, index) => new ClusterProcess(this.#workerArgs(index)),
    )
  }

  static async start(spec: ClusterSpec): Promise<TestCluster> {
    const cluster = new TestCluster(spec)
    try {
      await cluster.manager.start()
      await Promise.all(
        cluster.workers.map(async (worker) => {
          worker.addArguments(['--manager', cluster.managerUrl])
          await worker.start()
        }),
      )
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  get managerUrl(): string {
    return this.manager.httpUrl
  }

  worker(index: number): ClusterProcess {
    const worker = this.workers[index]
    if (worker === undefined) throw new Error(`no worker ${String(index)}`)
    return worker
  }

  /** GET of the manager's API. */
  async get<T>(path: string): Promise<T> {
    const headers: Record<string, string> =
      this.#spec.token === undefined ? {} : { authorization: `Bearer ${this.#spec.token}` }
    const answer = await fetch(`${this.managerUrl}${path}`, { headers })
    if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  /** Kills what runs and removes the data. */
  async stop(): Promise<void> {
    await Promise.all([this.manager, ...this.workers].map((process) => process.kill()))
    rmSync(this.directory, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #access(): readonly string[] {
    if (this.#spec.token === undefined) return []
    const path = join(this.directory, 'token')
    writeFileSync(path, `${this.#spec.token}\n`)
    return ['--token-file', path]
  }

  #workerArgs(index: number): readonly string[] {
    return [
      'worker',
      '--host=127.0.0.1',
      '--data-directories',
      join(this.directory, `worker-${String(index)}`),
      ...this.#access(),
      ...(this.#spec.workerOptions ?? []),
    ]
  }
}

/** The samples of a Prometheus text: summed over label sets by name. */
export async function scrape(url: string): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const sample = /^([a-z_]+)(\{.*\})? (\S+)/.exec(line)
    if (sample === null) continue
    const [, name = '', labels = '', value] = sample
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
    if (labels !== '') sums.set(`${name}${labels}`, Number(value))
  }
  return sums
}
