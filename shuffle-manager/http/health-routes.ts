// Liveness, readiness, metrics and the OpenAPI document.

import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { metricsText } from '../../client/common/metric-filter.ts'
import type { Cluster } from '../cluster/cluster.ts'

export function registerHealthRoutes(
  app: FastifyInstance,
  parts: {
    readonly cluster: Cluster
    readonly registry: Registry
    readonly metricsAllow: () => readonly string[]
  },
): void {
  const hidden = { hide: true }
  app.get('/healthz', { schema: hidden, config: { call: 'healthz' } }, () => ({ status: 'ok' }))

  app.get('/readyz', { schema: hidden, config: { call: 'readyz' } }, (_request, reply) => {
    const reason = parts.cluster.unreadyReason
    if (reason === undefined) return reply.send({ status: 'ready' })
    return reply.status(503).send({ status: 'not ready', reason })
  })

  app.get('/metrics', { schema: hidden, config: { call: 'metrics' } }, async (_request, reply) => {
    void reply.type(parts.registry.contentType)
    return reply.send(Buffer.from(await metricsText(parts.registry, parts.metricsAllow())))
  })

  app.get('/openapi.json', { schema: hidden, config: { call: 'openapi' } }, () => app.swagger())
}
