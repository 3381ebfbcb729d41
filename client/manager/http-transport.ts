// HTTP calls over the Network seam: undici for the bytes, with its own time-outs off and ours, on the
// Clock, in their place. Owned by a ManagerClient.

import { Pool } from 'undici'
import type { Clock } from '../common/clock.ts'
import { ShuffleError } from '../common/errors.ts'
import type { Network } from '../common/network.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Path and query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Long polls take one each, so this is more than a process has calls under way. */
const connectionsMax = 16

/** No answer of the manager comes near it; a peer that is no manager must not fill our memory. */
const answerBytesMax = 256 * 1024 * 1024

/** In place of "never", which undici does not know; its timer does not keep the process alive. */
const keepAliveMs = 2 ** 30

const connectTimeoutMs = 5_000

export class HttpTransport {
  readonly #url: string
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #underWay = new Set<Cancellation>()
  #closed: Error | undefined

  /** Throws INVALID_ARGUMENT when the address is not one of plain HTTP. */
  constructor(options: {
    readonly network: Pick<Network, 'connectStream'>
    readonly clock: Clock
    /** `http://host:port` */
    readonly url: string
  }) {
    checkUrl(options.url)
    this.#clock = options.clock
    this.#url = options.url
    this.#pool = new Pool(options.url, {
      connections: connectionsMax,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      maxResponseSize: answerBytesMax,
      connect: ({ hostname, port }, callback) => {
        options.network
          .connectStream({
            host: hostname,
            port: Number(port === '' ? 80 : port),
            timeoutMs: connectTimeoutMs,
          })
          .then(
            // undici's type asks for a socket; it uses what every duplex stream has.
            (stream) => {
              callback(null, stream as never)
            },
            (error: unknown) => {
              callback(error instanceof Error ? error : new Error(String(error)), null)
            },
          )
      },
    })
  }

  /**
   * Rejects with NO_MANAGER when no answer came within `timeoutMs`, or the connection failed; with
   * the reason of the signal when it aborted, or of {@link close}.
   */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    const { signal } = request
    signal?.throwIfAborted()
    if (this.#closed !== undefined) throw this.#closed
    const cancellation = new Cancellation()
    this.#underWay.add(cancellation)
    const onAbort = () => {
      cancellation.cancel(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    const timer = this.#clock.setTimer(request.timeoutMs, () => {
      cancellation.cancel(
        new ShuffleError(
          'NO_MANAGER',
          `the shuffle manager did not answer within ${String(request.timeoutMs)} ms`,
        ),
      )
    })
    try {
      return await this.#send(request, cancellation)
    } catch (error) {
      if (cancellation.aborted) throw cancellation.reason
      throw error
    } finally {
      this.#underWay.delete(cancellation)
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  async #send(request: HttpRequest, signal: Cancellation): Promise<HttpAnswer> {
    try {
      const answer = await this.#pool.request({
        method: request.method,
        path: request.url,
        headers: request.headers,
        signal,
        ...(request.body === undefined ? {} : { body: request.body }),
      })
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: await answer.body.text(),
      }
    } catch (error) {
      throw new ShuffleError(
        'NO_MANAGER',
        `no connection to the shuffle manager at ${this.#url}; is it running there?`,
        { cause: error, fields: { managerUrl: this.#url } },
      )
    }
  }

  /** Ends what is under way with the reason and closes the connections. */
  async close(reason: Error): Promise<void> {
    this.#closed ??= reason
    for (const cancellation of [...this.#underWay]) cancellation.cancel(reason)
    await this.#pool.destroy()
  }
}

/** There is no TLS: what was meant to be secret must not go out in the clear instead. */
function checkUrl(url: string): void {
  if (URL.canParse(url) && new URL(url).protocol === 'http:') return
  throw new ShuffleError(
    'INVALID_ARGUMENT',
    `the address of a shuffle manager is like http://host:9700, not ${url}; it speaks no TLS`,
  )
}

/**
 * The end of one call before its answer, as undici listens to it. An AbortSignal would do, but it and
 * its listeners are a good part of what a small call costs.
 */
class Cancellation {
  readonly #listeners = new Set<() => void>()
  aborted = false
  reason: unknown

  /** The first reason stays. */
  cancel(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of [...this.#listeners]) listener()
  }

  addEventListener(_name: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_name: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }
}
