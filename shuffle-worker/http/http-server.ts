// The worker's HTTP port, for probes, metrics and people: Fastify behind the Network seam, the
// libraries' own time-outs off. No payload ever comes this way, and no command but those about the
// process itself (its log's level, its options). Owned by the worker.
//
//   Network.listenStreams ─▶ http.Server (parses) ─▶ access ─▶ route

import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Registry } from 'prom-client'
import type { Clock } from '../../client/common/clock.ts'
import { errorTable, isShuffleError, ShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import { withListenAdvice } from '../../client/common/listen-error.ts'
import type { Address, Listener, Network } from '../../client/common/network.ts'
import { metricsText } from '../../client/common/metric-filter.ts'
import { addAdmission, HttpAdmission } from '../../client/manager/http-admission.ts'
import { answerMalformed } from '../../client/manager/http-malformed.ts'
import type { WaiterDescription } from '../../client/common/waiters.ts'
import { addSettingsPages, type SettingsPages } from './settings-pages.ts'

export interface HttpServerParts {
  readonly clock: Clock
  readonly registry: Registry
  readonly logger: Logger
  /** Undefined: the pages are open. */
  readonly token: string | undefined
  readonly metricsNeedToken: boolean
  /** Names of metrics to show, as expressions; all when empty. Asked at each scrape. */
  readonly metricsAllow: () => readonly string[]
  readonly process: SettingsPages
  /** Why the worker is not ready for new work; undefined when it is. */
  readonly notReady: () => string | undefined
  /** Answered as JSON. */
  readonly status: () => object
  readonly waiters: () => readonly WaiterDescription[]
  readonly partitions: () => readonly object[]
}

/** Probes, a scraper and some people: each holds one. */
export const httpConnectionsMax = 256
/** None of the pages waits for anything. */
export const httpCallsMax = 1024
/** Options to set, a level of the log: some hundred bytes. */
export const httpBodyBytesMax = 1024

/** Partitions in one answer; the next page begins at `next`. */
const pageSize = 1000

export class HttpServer {
  readonly #app: FastifyInstance
  readonly #listener: Listener
  readonly #admission: HttpAdmission

  private constructor(fields: {
    readonly app: FastifyInstance
    readonly listener: Listener
    readonly admission: HttpAdmission
  }) {
    this.#app = fields.app
    this.#listener = fields.listener
    this.#admission = fields.admission
  }

  /** Rejects when the port can't be had, with the options that change it. */
  static async listen(
    parts: HttpServerParts,
    where: { readonly network: Network; readonly address: Address },
  ): Promise<HttpServer> {
    let server: Server | undefined
    const admission = admissionOf(parts)
    const app = await createApp(parts, { admission, onServer: (made) => (server = made) })
    const listening = where.network.listenStreams(where.address, (stream: Duplex) => {
      if (!admission.admit(stream)) {
        stream.destroy()
        return
      }
      stream.once('close', () => {
        admission.closed(stream)
      })
      stream.on('error', (error) => {
        parts.logger.debug({ reason: error.message }, 'an HTTP connection ended with an error')
      })
      server?.emit('connection', stream)
    })
    const options = { host: 'bind-host', port: 'http-port' }
    const listener = await withListenAdvice(listening, where.address, options)
    return new HttpServer({ app, listener, admission })
  }

  get port(): number {
    return this.#listener.address.port
  }

  /** Cuts what is open: whoever asks here asks again. */
  async close(): Promise<void> {
    const closed = this.#listener.close()
    this.#admission.destroyAll()
    await closed
    await this.#app.close()
  }
}

/** The routes, without a port: tests call `inject` on it. */
export async function createApp(
  parts: HttpServerParts,
  where: {
    readonly admission?: HttpAdmission
    readonly onServer?: (server: Server) => void
  } = {},
): Promise<FastifyInstance> {
  const app = fastify({
    // Addresses that lead to no page.
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      void reply.send(answerError(error, reply))
    },
    clientErrorHandler: answerMalformed,
    bodyLimit: httpBodyBytesMax,
    pluginTimeout: 0,
    serverFactory: (handler) => {
      const server = createServer(
        {
          keepAliveTimeout: 0,
          requestTimeout: 0,
          headersTimeout: 0,
          connectionsCheckingInterval: 0,
        },
        handler,
      )
      server.timeout = 0
      where.onServer?.(server)
      return server
    },
  })
  addAdmission(app, where.admission ?? admissionOf(parts), httpBodyBytesMax)
  app.setErrorHandler((error, _request, reply) => answerError(error, reply))
  app.setNotFoundHandler((request, reply) => {
    reply.code(404)
    const message = `there is no ${request.method} ${request.url}: this is the HTTP port of a shuffle worker; the manager has another address`
    return { error: { code: 'INVALID_ARGUMENT', message } }
  })
  addProbes(app, parts)
  addMetrics(app, parts)
  addPages(app, parts)
  await app.ready()
  return app
}

function admissionOf({ clock }: HttpServerParts): HttpAdmission {
  return new HttpAdmission(clock, {
    connectionsMax: httpConnectionsMax,
    callsMax: httpCallsMax,
    bodiesBytesMax: httpCallsMax * httpBodyBytesMax,
  })
}

function addProbes(app: FastifyInstance, parts: HttpServerParts): void {
  app.get('/healthz', () => ({ status: 'alive' }))
  app.get('/readyz', (_request, reply) => {
    const reason = parts.notReady()
    if (reason !== undefined) reply.code(503)
    return reason === undefined ? { status: 'ready' } : { status: 'not ready', reason }
  })
}

function addMetrics(app: FastifyInstance, parts: HttpServerParts): void {
  const checkToken = tokenCheck(parts.metricsNeedToken ? parts.token : undefined)
  app.get('/metrics', async (request, reply) => {
    checkToken(request.headers.authorization)
    reply.type(parts.registry.contentType)
    return await metricsText(parts.registry, parts.metricsAllow())
  })
}

function addPages(app: FastifyInstance, parts: HttpServerParts): void {
  const checkToken = tokenCheck(parts.token)
  addSettingsPages(app, parts.process, checkToken)
  app.get('/v1/status', (request) => {
    checkToken(request.headers.authorization)
    return parts.status()
  })
  app.get('/v1/waiters', (request) => {
    checkToken(request.headers.authorization)
    return { waiters: parts.waiters() }
  })
  app.get('/v1/partitions', (request) => {
    checkToken(request.headers.authorization)
    const from = startOf((request.query as { readonly from?: unknown }).from)
    const all = parts.partitions()
    const next = from + pageSize
    return { partitions: all.slice(from, next), ...(next < all.length ? { next } : {}) }
  })
}

function startOf(text: unknown): number {
  if (text === undefined) return 0
  if (typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text)
  throw new ShuffleError('INVALID_ARGUMENT', 'from must be a whole number from 0 on')
}

/** Compares digests, so that neither content nor length of the token shows in the time it takes. */
function tokenCheck(token: string | undefined): (authorization: string | undefined) => void {
  if (token === undefined) return () => undefined
  const expected = digest(`Bearer ${token}`)
  return (authorization) => {
    if (authorization !== undefined && timingSafeEqual(digest(authorization), expected)) return
    throw new ShuffleError(
      'UNAUTHENTICATED',
      'this page asks for the token of the cluster: Authorization: Bearer <token>',
    )
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function answerError(error: unknown, reply: FastifyReply): unknown {
  if (isShuffleError(error)) {
    reply.code(errorTable[error.code].httpStatus)
    return { error: { code: error.code, message: error.message, fields: error.fields } }
  }
  const { statusCode: status = 500, code } = error as {
    readonly statusCode?: number
    readonly code?: string
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const message = `a body may have ${String(httpBodyBytesMax)} bytes`
    return answerError(new ShuffleError('LIMIT_EXCEEDED', message), reply)
  }
  reply.code(status)
  const message = error instanceof Error ? error.message : 'unexpected error'
  return { error: { code: status < 500 ? 'INVALID_ARGUMENT' : 'PROTOCOL', message } }
}
