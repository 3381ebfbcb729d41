// Somebody who takes workers out of service and puts them back, by the manager's API, and does not give up.

import { sleep } from '../../client/common/clock.ts'
import { parseClusterId } from '../../client/common/ids.ts'
import type { Logger } from '../../client/common/log.ts'
import { managerApi } from '../../client/manager/api.ts'
import { ManagerClient } from '../../client/manager/manager-client.ts'
import type { ShuffleWorker } from '../../shuffle-worker/worker.ts'
import { clusterId, clusterToken, managerUrl, type ClusterContext, type Member } from './cluster.ts'
import { SimProcess } from './process.ts'

const againMs = 500
const triesMax = 600

export class Operator {
  readonly process: SimProcess
  readonly #client: ManagerClient

  constructor(
    context: ClusterContext,
    options: { readonly name: string; readonly logger: Logger },
  ) {
    this.process = new SimProcess(context.virtual, options.name, context.tap)
    this.#client = new ManagerClient({
      world: this.process.world,
      logger: options.logger,
      url: managerUrl,
      clusterId: parseClusterId(clusterId),
      ...(context.plan.isTokenWanted ? { token: clusterToken } : {}),
    })
  }

  /**
   * Until the worker keeps it; false when it never did. What a manager has taken and not told the worker
   * goes with that manager, and whoever asked is told that it stands so.
   */
  async setService(
    worker: Member<ShuffleWorker>,
    workerId: string,
    state: 'draining' | 'serving',
  ): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      // One that lost its disks is another worker now.
      if ((worker.running?.workerId ?? workerId) !== workerId) return true
      try {
        const { isServiceTold } = await this.#client.call(managerApi.setWorkerService, {
          params: { workerId },
          query: {},
          body: { state, reason: 'simulated' },
        })
        if (isServiceTold) return true
      } catch {
        // The manager is away, or does not know the worker yet.
      }
      await sleep(this.process.world.clock, againMs)
    }
    return false
  }

  async close(): Promise<void> {
    await this.#client.close()
    this.process.kill()
  }
}
