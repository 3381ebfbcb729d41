// The manager's routes without a port, to be called by `inject`.

import type { FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import { HttpAdmission, type HttpLimits } from '../../client/manager/http-admission.ts'
import { silentLogger, type Logger } from '../../client/common/log.ts'
import { createApp } from '../../shuffle-manager/http/http-server.ts'
import type { ProcessSettings } from '../../client/common/running-options.ts'
import {
  declareClusterMetrics,
  declareManagerMetrics,
} from '../../shuffle-manager/manager-metrics.ts'
import { ClusterState } from './cluster-state.ts'

export interface ManagerApp {
  readonly app: FastifyInstance
  readonly admission: HttpAdmission
  readonly state: ClusterState
  readonly registry: Registry
  /** A call with a JSON body; answers status and body. */
  call(
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    url: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{
    readonly status: number
    readonly body: unknown
    readonly headers: Readonly<Record<string, unknown>>
  }>
}

export async function managerApp(
  options: {
    readonly state?: ClusterState
    readonly token?: string
    readonly metricsNeedToken?: boolean
    readonly logger?: Logger
    readonly metricsAllow?: readonly string[]
    readonly settings?: ProcessSettings
    readonly limits?: Partial<HttpLimits>
  } = {},
): Promise<ManagerApp> {
  const state = options.state ?? new ClusterState()
  const registry = new Registry()
  const metrics = declareManagerMetrics(registry)
  declareClusterMetrics(registry, state.cluster)
  const admission = new HttpAdmission(state.clock, {
    connectionsMax: 1_000,
    callsMax: 1_000,
    bodiesBytesMax: 64 * 1024 * 1024,
    ...options.limits,
  })
  const app = await createApp({
    cluster: state.cluster,
    registry,
    metrics,
    access: {
      clusterId: 'test',
      token: options.token,
      metricsNeedToken: options.metricsNeedToken === true,
    },
    admission,
    logger: options.logger ?? silentLogger,
    version: 'test',
    metricsAllow: () => options.metricsAllow ?? [],
    settings: options.settings,
    facts: () => ({ node: 'v20' }),
  })
  return {
    app,
    admission,
    state,
    registry,
    call: async (method, url, body, headers = {}) => {
      const answer = await app.inject({
        method,
        url,
        headers: { ...headers },
        ...(body === undefined ? {} : { payload: body as object }),
      })
      const isJson = String(answer.headers['content-type']).startsWith('application/json')
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: isJson ? (JSON.parse(answer.body) as unknown) : answer.body,
      }
    },
  }
}
