// What the loop probe tells, and how it is asked.

import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const probeFileVariable = 'SLUICE_BENCH_PROBE_FILE'
export const profileFileVariable = 'SLUICE_BENCH_PROFILE_DIRECTORY'

export interface ProbeReport {
  /** Counts the asks. */
  readonly phase: number
  readonly loopDelayP99Ms: number
  readonly loopDelayMaxMs: number
  readonly heapUsedBytes: number
}

/** Environment of a process that is to be probed. */
export function probeEnvironment(
  path: string,
  profileDirectory: string | undefined,
): Readonly<Record<string, string>> {
  const probe = new URL('./loop-probe.js', import.meta.url)
  return {
    // With the caller's own: --perf-basic-prof, say.
    NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import=${fileURLToPath(probe)}`.trim(),
    [probeFileVariable]: path,
    ...(profileDirectory === undefined ? {} : { [profileFileVariable]: profileDirectory }),
  }
}

const answerTimeoutMs = 10_000
const pollMs = 5

/** The one who asks a probed process; one for its whole life. */
export class Probe {
  readonly #pid: number
  readonly #path: string
  #phase = 0

  constructor(pid: number, path: string) {
    this.#pid = pid
    this.#path = path
  }

  /** Ends the phase under way. */
  async next(): Promise<ProbeReport> {
    this.#phase += 1
    process.kill(this.#pid, 'SIGUSR2')
    const deadlineMs = performance.now() + answerTimeoutMs
    while (performance.now() < deadlineMs) {
      const report = this.#read()
      if (report?.phase === this.#phase) return report
      await sleep(pollMs)
    }
    throw new Error(`process ${String(this.#pid)} did not answer its probe`)
  }

  #read(): ProbeReport | undefined {
    if (!existsSync(this.#path)) return undefined
    return JSON.parse(readFileSync(this.#path, 'utf8')) as ProbeReport
  }
}
