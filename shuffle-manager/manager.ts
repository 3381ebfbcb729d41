// One shuffle manager, wired: epoch, cluster, HTTP port. Owned by the process's main, or by a test,
// which gives it the world.

import { Registry } from 'prom-client'
import { withListenAdvice } from '../client/common/listen-error.ts'
import { HttpAdmission } from '../client/manager/http-admission.ts'
import { parseClusterId } from '../client/common/ids.ts'
import type { Logger } from '../client/common/log.ts'
import type { ProcessFacts } from '../client/common/process-facts.ts'
import type { ProcessSettings } from '../client/common/running-options.ts'
import type { World } from '../client/common/world.ts'
import { Cluster } from './cluster/cluster.ts'
import type { ClusterOptions } from './cluster/cluster-options.ts'
import { HttpServer } from './http/http-server.ts'
import { declareClusterMetrics, declareManagerMetrics } from './manager-metrics.ts'
import type { ManagerOptions } from './options.ts'
import { openEpoch, type OpenedEpoch } from './state/epoch-file.ts'

export const managerVersion = '0.1.0'

export interface ShuffleManagerSettings {
  readonly world: Pick<World, 'clock' | 'random' | 'network' | 'disk'>
  readonly options: ManagerOptions
  /** The secret of the cluster; undefined leaves the port open to all. */
  readonly token?: string | undefined
  readonly logger: Logger
  /** Of the process, where it is one of its own: for people who look at it and change it. */
  readonly settings?: ProcessSettings
  readonly facts?: () => ProcessFacts
}

export class ShuffleManager {
  readonly #settings: ShuffleManagerSettings
  readonly #epoch: OpenedEpoch
  readonly #cluster: Cluster
  readonly #server: HttpServer
  #stopped: Promise<void> | undefined

  private constructor(fields: {
    readonly settings: ShuffleManagerSettings
    readonly epoch: OpenedEpoch
    readonly cluster: Cluster
    readonly server: HttpServer
  }) {
    this.#settings = fields.settings
    this.#epoch = fields.epoch
    this.#cluster = fields.cluster
    this.#server = fields.server
  }

  /** Rejects when another manager runs in its directory, or the port can't be had. */
  static async start(settings: ShuffleManagerSettings): Promise<ShuffleManager> {
    const { world, options, token, logger } = settings
    warnWhenOpen(settings)
    const epoch = await openEpoch({
      disk: world.disk,
      directory: options.stateDirectory,
      wallMs: world.clock.wallMs(),
    })
    const registry = new Registry()
    const metrics = declareManagerMetrics(registry)
    const cluster = new Cluster({
      clock: world.clock,
      random: world.random,
      clusterId: parseClusterId(options.clusterId),
      managerEpoch: epoch.managerEpoch,
      options: clusterOptionsOf(options),
      placement: options.placement,
      onLook: (lateMs) => {
        metrics.lagSeconds.set(lateMs / 1000)
      },
    })
    declareClusterMetrics(registry, cluster)
    const { clusterId, metricsNeedToken } = options
    const access = { clusterId, token, metricsNeedToken }
    const parts = {
      cluster,
      registry,
      metrics,
      access,
      logger,
      version: managerVersion,
      admission: new HttpAdmission(world.clock, {
        connectionsMax: options.connectionsMax,
        callsMax: options.callsMax,
        bodiesBytesMax: options.callBodiesBytes,
      }),
      metricsAllow: () => options.metricsAllow,
      settings: settings.settings,
      facts: settings.facts ?? (() => ({})),
    }
    try {
      const address = { host: options.host, port: options.port }
      const { network, clock } = world
      const listening = HttpServer.listen(parts, { network, clock, address })
      const server = await withListenAdvice(listening, address, { host: 'host', port: 'port' })
      cluster.start()
      return new ShuffleManager({ settings, epoch, cluster, server })
    } catch (error) {
      await epoch.close()
      throw error
    }
  }

  get managerEpoch(): number {
    return this.#cluster.managerEpoch
  }

  get port(): number {
    return this.#server.address.port
  }

  /** Under which this machine reaches it. */
  get url(): string {
    const { host } = this.#settings.options
    const isAny = host === '0.0.0.0' || host === '::'
    const name = isAny ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
    return `http://${name}:${String(this.port)}`
  }

  /** Answers what waits, gives calls under way a moment, frees the port. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#cluster.close()
    await this.#server.close(this.#settings.options.stopTimeoutMs)
    await this.#epoch.close()
  }
}

const loopbackHosts = new Set(['127.0.0.1', 'localhost', '::1'])

function warnWhenOpen({ options, token, logger }: ShuffleManagerSettings): void {
  if (token !== undefined || loopbackHosts.has(options.host)) return
  logger.warn(
    { host: options.host },
    'THE MANAGER IS OPEN TO EVERYONE who reaches its port: it listens on more than loopback and has no token; set --token-file',
  )
}

function clusterOptionsOf(options: ManagerOptions): ClusterOptions {
  return options
}
