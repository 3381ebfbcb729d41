// What can be said of a running cluster from outside: the manager, each worker as the manager sees it
// and as it answers itself.

import { connect } from 'node:net'
import type { managerApi } from '../../client/manager/api.ts'
import type { ProcessDescription } from '../../client/manager/api-settings.ts'
import type { WorkerSummary } from '../../client/manager/api-workers.ts'
import type { CallAnswer } from '../../client/manager/route.ts'
import type { DirectoryStatus } from '../../client/manager/schemas.ts'
import { checkDescriptors, threadsNeededFor } from '../../shuffle-worker/process-limits.ts'
import { callProcess, workerProcess } from '../process-calls.ts'
import { humanBytes, humanDuration } from '../text-table.ts'
import { failure, messageOf, ok, warning, type Check } from './check.ts'

type Cluster = CallAnswer<typeof managerApi.describeCluster>

/** A process as it describes itself, and how far its clock is from this machine's. */
export interface AskedProcess {
  readonly process: ProcessDescription
  readonly clockOffMs: number
}

export interface WorkerStatus {
  readonly eventLoopLagMs?: number
}

const clockWarnMs = 2000
const clockFailMs = 60_000
const lagWarnMs = 1000
const freeShareWarn = 0.15
const connectTimeoutMs = 5000

export function managerChecks(cluster: Cluster): Check[] {
  const { isReady, reason, upMs, workerCounts } = cluster
  const checks: Check[] = []
  const what = 'manager'
  checks.push(
    isReady
      ? ok(what, `ready, up ${humanDuration(upMs)}, version ${cluster.version}`)
      : failure(
          what,
          `allocates nothing: ${reason}`,
          'wait if it has just started; else the reason says what to do',
        ),
  )
  const alive = workerCounts['alive'] ?? 0
  const all = Object.values(workerCounts).reduce((sum, count) => sum + count, 0)
  checks.push(
    alive > 0
      ? ok('workers', `${alive} of ${all} are alive`)
      : failure(
          'workers',
          'none is alive',
          'start workers, or look at their logs: why do they not register?',
        ),
  )
  return checks
}

/** What the manager says of a worker. */
export function workerChecks(worker: WorkerSummary, managerVersion: string): Check[] {
  const what = `worker ${worker.workerId}`
  const checks = [stateCheck(worker, what)]
  if (worker.service.state !== 'serving') {
    const { state, reason } = worker.service
    checks.push(
      warning(
        what,
        `${state}${reason === '' ? '' : ` (${reason})`}`,
        '`sluice undrain` puts it back into service',
      ),
    )
  }
  if (worker.version !== '' && worker.version !== managerVersion) {
    checks.push(
      warning(
        what,
        `version ${worker.version}, the manager has ${managerVersion}`,
        'finish the upgrade',
      ),
    )
  }
  for (const directory of worker.directories) checks.push(directoryCheck(directory, what))
  return checks
}

function stateCheck({ state, silentMs }: WorkerSummary, what: string): Check {
  const silent = `${state}, silent for ${humanDuration(silentMs)}`
  if (state === 'alive') return ok(what, 'alive')
  if (state === 'lost') {
    return failure(
      what,
      silent,
      'start it again; until then what it held is produced again elsewhere',
    )
  }
  return warning(what, silent, 'look at its process, its event loop and the network to the manager')
}

function directoryCheck({ name, health, isFull, ...space }: DirectoryStatus, what: string): Check {
  const { freeBytes, totalBytes } = space
  const where = `${what}: disk ${name}`
  const free = `${humanBytes(freeBytes)} of ${humanBytes(totalBytes)} free`
  if (health !== 'healthy') {
    return failure(
      where,
      health,
      'look at the kernel log and at the disk; a failed one is used again after a restart of the worker',
    )
  }
  if (isFull)
    return failure(where, `full, ${free}`, 'add workers or disks, or release jobs (`sluice jobs`)')
  if (freeBytes < totalBytes * freeShareWarn) {
    return warning(
      where,
      free,
      'it is nearly full: add workers or disks, or release jobs (`sluice jobs`)',
    )
  }
  return ok(where, free)
}

/** What a process says of itself. */
export function processChecks(what: string, { process, clockOffMs }: AskedProcess): Check[] {
  const errors = process.problems.filter(({ level }) => level === 'error')
  const last = errors.at(-1)
  return [
    clockCheck(what, clockOffMs),
    ...(last === undefined
      ? []
      : [
          warning(
            `${what}: log`,
            `${errors.length} errors among its last problems, the latest: ${last.message}`,
            'look at its log, or at `sluice support-bundle`',
          ),
        ]),
    ...(process.role === 'worker' ? workerLimitChecks(what, process) : []),
  ]
}

function clockCheck(what: string, offMs: number): Check {
  const where = `${what}: clock`
  const off = Math.abs(offMs)
  const seen = `${humanDuration(off)} ${offMs < 0 ? 'behind' : 'ahead of'} this machine's`
  if (off <= clockWarnMs) return ok(where, seen)
  const advice =
    'synchronise the clocks: a manager that starts with an older clock may not be obeyed'
  return off > clockFailMs ? failure(where, seen, advice) : warning(where, seen, advice)
}

function workerLimitChecks(what: string, { facts, options }: ProcessDescription): Check[] {
  const option = (name: string) => options.find((one) => one.name === name)?.value ?? ''
  const disks = option('data-directories').split(',')
  const kinds = disks.map((text) => (/^\[hdd\]/i.test(text) ? 'hdd' : 'ssd'))
  const needed = threadsNeededFor(kinds)
  const threads = Number(facts['threadPool'])
  const threadCheck =
    threads >= needed
      ? ok(`${what}: thread pool`, `${threads} threads, ${needed} are needed`)
      : failure(
          `${what}: thread pool`,
          `${threads} threads, ${needed} are needed`,
          `set UV_THREADPOOL_SIZE=${needed}`,
        )
  return [threadCheck, descriptorCheck(what, String(facts['openFilesMax']), option)]
}

function descriptorCheck(what: string, limit: string, option: (name: string) => string): Check {
  const where = `${what}: open files`
  try {
    checkDescriptors(`Max open files ${limit}`, {
      connectionsMax: Number(option('connections-max')),
      openWritesMax: Number(option('open-writes-max')),
      openFilesMax: Number(option('open-files-max')),
    })
    return ok(where, `the limit is ${limit}`)
  } catch (error) {
    return failure(where, messageOf(error), 'raise the limit (LimitNOFILE, ulimit -n)')
  }
}

export function lagCheck(what: string, { eventLoopLagMs = 0 }: WorkerStatus): Check {
  const where = `${what}: event loop`
  const seen = `at worst ${humanDuration(eventLoopLagMs)} late in the last minutes`
  if (eventLoopLagMs < lagWarnMs) return ok(where, seen)
  return warning(where, seen, 'it has too little CPU, or too much to do')
}

/** Asks a worker itself: its HTTP port, its data port. */
export async function askWorker(
  worker: WorkerSummary,
  token: string | undefined,
): Promise<Check[]> {
  const what = `worker ${worker.workerId}`
  const checks: Check[] = []
  const target = workerProcess(worker)
  try {
    checks.push(...processChecks(what, await askProcessFor(target, token)))
    const status = await callProcess<WorkerStatus>(
      target,
      { method: 'GET', path: '/v1/status' },
      token,
    )
    checks.push(ok(`${what}: HTTP port`, target.url ?? ''), lagCheck(what, status))
  } catch (error) {
    checks.push(
      failure(
        `${what}: HTTP port`,
        messageOf(error),
        'is it reachable from here, and is the token right?',
      ),
    )
  }
  checks.push(await dataPortCheck(worker, what))
  return checks
}

export async function askProcessFor(
  target: Parameters<typeof callProcess>[0],
  token: string | undefined,
): Promise<AskedProcess> {
  const before = Date.now()
  const process = await callProcess<ProcessDescription>(
    target,
    { method: 'GET', path: '/v1/process' },
    token,
  )
  const now = (before + Date.now()) / 2
  return { process, clockOffMs: process.wallMs - now }
}

async function dataPortCheck({ host, port }: WorkerSummary, what: string): Promise<Check> {
  const where = `${what}: data port`
  const address = `${host}:${port}`
  const problem = await new Promise<string | undefined>((resolve) => {
    const socket = connect({ host, port, timeout: connectTimeoutMs })
    const end = (text: string | undefined) => {
      socket.destroy()
      resolve(text)
    }
    socket.once('connect', () => {
      end(undefined)
    })
    socket.once('timeout', () => {
      end(`${address} does not answer within ${humanDuration(connectTimeoutMs)}`)
    })
    socket.once('error', (error) => {
      end(`${address}: ${error.message}`)
    })
  })
  if (problem === undefined) return ok(where, address)
  return failure(
    where,
    problem,
    'tasks must reach it by this name: see the option host, and firewalls',
  )
}
