// A server that answers calls with what a test says, by method and path, and remembers what was asked.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** As a manager sends them. */
const headers = { 'content-type': 'application/json', 'sluice-manager-epoch': '1' }

/** An answer, or a function of the body that makes one. */
export type Answer = unknown

export class HttpAnswers {
  readonly #server: Server
  /** `GET /v1/workers`: what is answered as JSON, or as it is when it is a text. */
  readonly answers: Record<string, Answer>
  /** Calls in their order, with their bodies. */
  readonly asked: { readonly call: string; readonly body: string }[] = []

  private constructor(answers: Record<string, Answer>) {
    this.answers = answers
    this.#server = createServer((request, response) => {
      const call = `${request.method ?? ''} ${request.url ?? ''}`
      void text(request).then((body) => {
        this.asked.push({ call, body })
        if (request.headers.authorization === 'Bearer wrong') {
          const error = { code: 'UNAUTHENTICATED', message: 'wrong token', fields: {} }
          response.writeHead(401, headers)
          response.end(JSON.stringify({ error }))
          return
        }
        const found = this.answers[call] ?? {}
        const answer: unknown =
          typeof found === 'function' ? (found as (body: string) => unknown)(body) : found
        response.writeHead(statusOf(answer), headers)
        response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
      })
    })
  }

  static async start(answers: Record<string, Answer>): Promise<HttpAnswers> {
    const made = new HttpAnswers(answers)
    await new Promise<void>((resolve) => made.#server.listen(0, '127.0.0.1', resolve))
    return made
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

/** The cluster as its manager tells of it. */
export function toldCluster(change: Readonly<Record<string, unknown>> = {}): object {
  return {
    clusterId: 'sluice',
    managerEpoch: 1,
    version: '0.1.0',
    upMs: 1,
    isReady: true,
    reason: '',
    wallMs: 1,
    workerCounts: { alive: 1 },
    jobCount: 0,
    partitionCount: 0,
    byteCount: 0,
    freeBytes: 0,
    ...change,
  }
}

/** A worker as the manager tells of it. */
export function toldWorker(change: Readonly<Record<string, unknown>> = {}): object {
  return {
    workerId: 'worker-1',
    workerEpoch: 1,
    host: 'w.example',
    port: 9710,
    version: '0.1.0',
    state: 'alive',
    isDraining: false,
    service: { state: 'serving', reason: '', number: 0 },
    isServiceTold: true,
    openWrites: 0,
    partitionCount: 0,
    byteCount: 0,
    silentMs: 0,
    directories: [],
    ...change,
  }
}

function statusOf(answer: unknown): number {
  const error = (answer as { readonly error?: unknown }).error
  return error === undefined ? 200 : 400
}
