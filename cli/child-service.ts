// A manager or worker as a child process of a command: started on the ports that it is told, ended
// with the command, whatever ends that.

import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { ShuffleError } from '../client/index.ts'
import { workerNodeFlags } from '../shuffle-worker/heap-limits.ts'
import { temporaryDirectoryVariable } from './service-commands.ts'

/** What a service prints when it is ready. */
export interface ReadyLine {
  readonly role: 'manager' | 'worker'
  /** The manager's address. */
  readonly url?: string
  readonly workerId?: string
  readonly dataPort?: number
  readonly httpPort?: number
}

export interface ChildServiceOptions {
  /** Command and options. */
  readonly argv: readonly string[]
  /** Removed by the child when it ends. */
  readonly temporaryDirectory?: string
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** What it writes to standard error: its log. */
  readonly onLog?: (text: string) => void
  /** Aborted while the service starts: it is killed, and `start` rejects. */
  readonly signal?: AbortSignal
  readonly startTimeoutMs?: number
  readonly stopTimeoutMs?: number
}

const startTimeoutDefaultMs = 30_000
const stopTimeoutDefaultMs = 10_000
/** The end of what a service that failed had to say. */
const stderrKept = 4000

export class ChildService {
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #stopTimeoutMs: number
  readonly ready: ReadyLine

  private constructor(
    child: ChildProcess,
    exited: Promise<void>,
    ready: ReadyLine,
    stopMs: number,
  ) {
    this.#child = child
    this.#exited = exited
    this.#stopTimeoutMs = stopMs
    this.ready = ready
  }

  /** Resolves when the service is ready; rejects with the end of its log when it ends instead. */
  static async start(options: ChildServiceOptions): Promise<ChildService> {
    options.signal?.throwIfAborted()
    const isSource = import.meta.url.endsWith('.ts')
    const main = fileURLToPath(new URL(isSource ? './main.ts' : './main.js', import.meta.url))
    const runner = isSource ? ['--import', 'tsx'] : []
    const flags = options.argv[0] === 'worker' ? workerNodeFlags : []
    const child = spawn(process.execPath, [...flags, ...runner, main, ...options.argv], {
      // A group of its own: a terminal's Ctrl-C reaches the command alone, which then ends this.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        // Enough threads for the file calls of one disk: else a worker starts itself once more.
        UV_THREADPOOL_SIZE: '16',
        ...process.env,
        ...options.environment,
        ...temporary(options.temporaryDirectory),
      },
    })
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => {
        resolve()
      })
      child.once('error', () => {
        resolve()
      })
    })
    // Its input is how it notices that this process is gone; an error of it means no more than that.
    child.stdin.on('error', () => undefined)
    const ready = await readyLine(child, options).catch(async (error: unknown) => {
      child.kill('SIGKILL')
      await exited
      throw error
    })
    return new ChildService(child, exited, ready, options.stopTimeoutMs ?? stopTimeoutDefaultMs)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Resolves when the process has ended, for whatever reason. */
  get exited(): Promise<void> {
    return this.#exited
  }

  /** Asks it to stop; kills it when it does not in time. */
  async stop(): Promise<void> {
    this.#child.stdin?.end()
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => {
      this.#child.kill('SIGKILL')
    }, this.#stopTimeoutMs)
    await this.#exited
    clearTimeout(timer)
  }
}

function temporary(directory: string | undefined): Readonly<Record<string, string>> {
  return directory === undefined ? {} : { [temporaryDirectoryVariable]: directory }
}

function readyLine(child: ChildProcess, options: ChildServiceOptions): Promise<ReadyLine> {
  const [role = 'service'] = options.argv
  return new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', '']
    const over = () => {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', onAbort)
    }
    const fail = (what: string) => {
      over()
      reject(new ShuffleError('NO_MANAGER', `the ${role} ${what}\n${stderr.trim()}`.trim()))
    }
    const onAbort = () => {
      fail('was given up while it started')
    }
    options.signal?.addEventListener('abort', onAbort)
    const timer = setTimeout(() => {
      fail('was not ready in time')
    }, options.startTimeoutMs ?? startTimeoutDefaultMs)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = `${stderr}${text}`.slice(-stderrKept)
      options.onLog?.(text)
    })
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout = `${stdout}${text}`.slice(-stderrKept)
      const line = /^\{.*\}$/m.exec(stdout)?.[0]
      if (line === undefined) return
      over()
      resolve(JSON.parse(line) as ReadyLine)
    })
    child.once('error', (error) => {
      fail(`could not be started: ${error.message}`)
    })
    child.once('exit', (code, signal) => {
      fail(`ended at its start (${signal ?? String(code)})`)
    })
  })
}
