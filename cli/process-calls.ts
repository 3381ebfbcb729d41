// Calls to the HTTP ports of single processes: the manager's and each worker's. One try, a deadline, a
// bound on what is read: who does not answer is an answer, too.

import { request } from 'undici'
import { ShuffleError } from '../client/index.ts'
import { isErrorCode } from '../client/common/errors.ts'
import { managerApi } from '../client/manager/api.ts'
import type { WorkerSummary } from '../client/manager/api-workers.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import { nothing } from './manager-command.ts'
import { chooseWorker } from './named-worker.ts'

/** A process of the cluster with its HTTP port. */
export interface ClusterProcess {
  /** `manager`, or the worker's id. */
  readonly name: string
  /** Undefined for a worker that has told no HTTP port. */
  readonly url: string | undefined
  readonly worker?: WorkerSummary
}

export interface ProcessAnswer {
  readonly status: number
  readonly text: string
}

const timeoutMs = 5000
const answerBytesMax = 16 * 1024 * 1024

export interface ProcessRequest {
  readonly method: 'GET' | 'PUT' | 'POST'
  readonly path: string
  readonly body?: unknown
}

/** WORKER_UNREACHABLE with the reason, or LIMIT_EXCEEDED for an answer without end. */
export async function askProcess(
  { name, url }: ClusterProcess,
  { method, path, body }: ProcessRequest,
  token: string | undefined,
): Promise<ProcessAnswer> {
  if (url === undefined) throw unreachable(name, 'it has told no HTTP port')
  try {
    const answer = await request(`${url}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      signal: AbortSignal.timeout(2 * timeoutMs),
    })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > answerBytesMax) {
        throw new ShuffleError('LIMIT_EXCEEDED', `${url}${path} answers more than 16 MiB`)
      }
      chunks.push(chunk)
    }
    return { status: answer.statusCode, text: Buffer.concat(chunks).toString() }
  } catch (error) {
    if (error instanceof ShuffleError) throw error
    throw unreachable(name, `${url}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The JSON object of an answer; the error that it carries is thrown. */
export async function callProcess<T>(
  process: ClusterProcess,
  call: ProcessRequest,
  token: string | undefined,
): Promise<T> {
  const { status, text } = await askProcess(process, call, token)
  const content = parse(text)
  if (status < 400 && content !== undefined) return content as T
  const { error } = (content ?? {}) as { readonly error?: { code?: string; message?: string } }
  const code = error?.code !== undefined && isErrorCode(error.code) ? error.code : 'PROTOCOL'
  const reason = error?.message ?? `status ${status} and no error that is known`
  throw new ShuffleError(code, `${process.name}: ${reason}`)
}

/** The manager and every worker that it knows and has not given up. */
export async function allProcesses(
  client: ManagerClient,
  manager: string,
): Promise<readonly ClusterProcess[]> {
  const { workers } = await client.call(managerApi.listWorkers, nothing)
  const living = workers.filter(({ state }) => state !== 'lost' && state !== 'expected')
  return [managerProcess(manager), ...living.map(workerProcess)]
}

/** Those that a person means: `all`, `manager`, `workers`, or a worker. */
export async function namedProcesses(
  client: ManagerClient,
  manager: string,
  target: string,
): Promise<readonly ClusterProcess[]> {
  if (target === 'manager') return [managerProcess(manager)]
  const all = await allProcesses(client, manager)
  if (target === 'all') return all
  const workers = all.flatMap(({ worker }) => worker ?? [])
  if (target === 'workers') return workers.map(workerProcess)
  return [workerProcess(chooseWorker(workers, target))]
}

export function managerProcess(manager: string): ClusterProcess {
  return { name: 'manager', url: manager.replace(/\/$/, '') }
}

export function workerProcess(worker: WorkerSummary): ClusterProcess {
  const { workerId, host, httpPort } = worker
  const name = host.includes(':') ? `[${host}]` : host
  const url = httpPort === undefined ? undefined : `http://${name}:${httpPort}`
  return { name: workerId, url, worker }
}

function unreachable(name: string, reason: string): ShuffleError {
  return new ShuffleError('WORKER_UNREACHABLE', `${name} can't be asked: ${reason}`, {
    fields: { process: name },
  })
}

/** Undefined for all but an object. */
function parse(text: string): object | undefined {
  try {
    const content = JSON.parse(text) as unknown
    return typeof content === 'object' && !Array.isArray(content)
      ? (content ?? undefined)
      : undefined
  } catch {
    return undefined
  }
}
