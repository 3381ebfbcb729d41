// The manager's HTTP port: Fastify behind the Network seam. Node's and Fastify's own time-outs are
// off: time is the Clock's. Owned by the manager.
//
//   Network.listenStreams ─> http.Server (parses) ─> access ─> validation ─> route ─> Cluster

import { createServer, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import swagger from '@fastify/swagger'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import type { Address, Listener, Network } from '../../client/common/network.ts'
import type { Clock } from '../../client/common/clock.ts'
import { sleep } from '../../client/common/clock.ts'
import type { Logger } from '../../client/common/log.ts'
import type { ProcessFacts } from '../../client/common/process-facts.ts'
import type { ProcessSettings } from '../../client/common/running-options.ts'
import { addAdmission, type HttpAdmission } from '../../client/manager/http-admission.ts'
import { answerMalformed } from '../../client/manager/http-malformed.ts'
import { bodyBytesMax, headers } from '../../client/manager/schemas.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { ManagerMetrics } from '../manager-metrics.ts'
import { checkAccess, type AccessRules } from './access.ts'
import { registerClusterRoutes } from './cluster-routes.ts'
import { answerOf } from './error-answers.ts'
import { registerHealthRoutes } from './health-routes.ts'
import { registerJobRoutes } from './job-routes.ts'
import { registerPartitionRoutes } from './partition-routes.ts'
import { registerSettingsRoutes } from './settings-routes.ts'
import { registerWorkerRoutes } from './worker-routes.ts'

export interface HttpParts {
  readonly cluster: Cluster
  readonly registry: Registry
  readonly metrics: ManagerMetrics
  readonly access: AccessRules
  readonly admission: HttpAdmission
  readonly logger: Logger
  readonly version: string
  /** Names of metrics to show, as expressions; all when empty. Asked at each scrape. */
  readonly metricsAllow: () => readonly string[]
  readonly settings?: ProcessSettings | undefined
  readonly facts: () => ProcessFacts
}

/** The routes, without a port: tests call `inject` on it. */
export async function createApp(
  parts: HttpParts,
  onServer: (server: Server) => void = () => undefined,
): Promise<FastifyInstance> {
  const answerError = errorAnswers(parts)
  const app = fastify({
    // Addresses that lead to no route: no hook sees them.
    frameworkErrors: (error, request, reply) => {
      nameManager(parts.cluster, reply)
      answerError(error, request, reply)
    },
    clientErrorHandler: answerMalformed,
    bodyLimit: bodyBytesMax,
    pluginTimeout: 0,
    routerOptions: { maxParamLength: 400 },
    forceCloseConnections: false,
    // Names of jobs and states are keys of maps, and may be any: nothing assigns by them to an object.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // The contract is strict about kinds, and lenient about fields that a newer peer may add.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
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
      onServer(server)
      return server
    },
  })
  // Answers are made here, not by a peer: the schemas type them, JSON.stringify is enough.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  addHooks(app, parts)
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((request, reply) => {
    const message = `there is no ${request.method} ${request.url.slice(0, 200)}; /openapi.json lists all calls`
    void reply.status(404).send({ error: { code: 'INVALID_ARGUMENT', message, fields: {} } })
  })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Sluice shuffle manager', version: parts.version },
    },
  })
  // In a plugin of its own, so that it comes after swagger's hook on routes.
  await app.register((routes, _options, done) => {
    registerHealthRoutes(routes, parts)
    registerJobRoutes(routes, parts.cluster, parts.metrics)
    registerPartitionRoutes(routes, parts.cluster, parts.metrics)
    registerWorkerRoutes(routes, parts.cluster)
    registerClusterRoutes(routes, parts.cluster, parts.version)
    const { settings, facts, version } = parts
    registerSettingsRoutes(routes, { clock: parts.cluster.clock, settings, facts, version })
    done()
  })
  await app.ready()
  return app
}

export class HttpServer {
  readonly #clock: Clock
  readonly #app: FastifyInstance
  readonly #listener: Listener
  readonly #admission: HttpAdmission

  private constructor(fields: {
    readonly clock: Clock
    readonly app: FastifyInstance
    readonly listener: Listener
    readonly admission: HttpAdmission
  }) {
    this.#clock = fields.clock
    this.#app = fields.app
    this.#listener = fields.listener
    this.#admission = fields.admission
  }

  /** Rejects with the system's error when the port can't be had. */
  static async listen(
    parts: HttpParts,
    where: {
      readonly network: Network
      readonly clock: Clock
      readonly address: Address
    },
  ): Promise<HttpServer> {
    let server: Server | undefined
    const app = await createApp(parts, (made) => (server = made))
    const { admission } = parts
    const listener = await where.network.listenStreams(where.address, (stream: Duplex) => {
      if (!admission.admit(stream)) {
        const { connections } = admission
        parts.logger.warn({ connections }, 'a connection past the limit was refused')
        stream.destroy()
        return
      }
      stream.once('close', () => {
        admission.closed(stream)
      })
      stream.on('error', (error) => {
        parts.logger.debug({ error: error.message }, 'a connection ended with an error')
      })
      server?.emit('connection', stream)
    })
    return new HttpServer({ clock: where.clock, app, listener, admission })
  }

  get address(): Address {
    return this.#listener.address
  }

  /** Takes no new connections, gives what is under way `timeoutMs`, then cuts the rest. */
  async close(timeoutMs: number): Promise<void> {
    const closed = this.#listener.close()
    const deadlineMs = this.#clock.nowMs() + timeoutMs
    while (this.#admission.calls > 0 && this.#clock.nowMs() < deadlineMs) {
      await sleep(this.#clock, closePollMs)
    }
    this.#admission.destroyAll()
    await closed
    await this.#app.close()
  }
}

const closePollMs = 10

function addHooks(app: FastifyInstance, parts: HttpParts): void {
  const { cluster, metrics } = parts
  const startedMs = new WeakMap<FastifyRequest, number>()

  app.addHook('onRequest', (request, reply, done) => {
    startedMs.set(request, cluster.clock.nowMs())
    reply.raw.sendDate = false
    nameManager(cluster, reply)
    metrics.requestBytes.inc(Number(request.headers['content-length'] ?? 0))
    const path = request.url.replace(/\?.*$/s, '')
    checkAccess(parts.access, {
      path,
      header: (name) => {
        const value = request.headers[name]
        return Array.isArray(value) ? value[0] : value
      },
    })
    const epoch = Number(request.headers[headers.managerEpoch] ?? 0)
    // Health and metrics are open to those who don't know the token.
    if (path.startsWith('/v1/')) {
      cluster.checkOpen()
      if (Number.isSafeInteger(epoch)) cluster.noteEpoch(epoch)
    }
    done()
  })

  app.addHook('onResponse', (request, reply, done) => {
    const { call } = request.routeOptions.config
    const name = call ?? 'other'
    metrics.requests.inc({ call: name, status: reply.statusCode })
    metrics.answerBytes.inc(Number(reply.getHeader('content-length') ?? 0))
    const elapsedMs = cluster.clock.nowMs() - (startedMs.get(request) ?? 0)
    metrics.requestSeconds.observe({ call: name }, elapsedMs / 1000)
    done()
  })
  addAdmission(app, parts.admission, bodyBytesMax)
}

/** On every answer: whose it is. */
function nameManager(cluster: Cluster, reply: FastifyReply): void {
  void reply.header(headers.managerEpoch, String(cluster.managerEpoch))
  void reply.header(headers.cluster, cluster.clusterId)
}

function errorAnswers({ metrics, logger }: HttpParts) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const answer = answerOf(error)
    metrics.errors.inc({ code: answer.body.error.code })
    if (answer.isOurs) {
      logger.error(
        { url: request.url, error: String(error), stack: (error as Error).stack },
        'a call failed',
      )
    }
    void reply.status(answer.status).send(answer.body)
  }
}
