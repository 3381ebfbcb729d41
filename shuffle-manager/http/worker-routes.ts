// Calls of shuffle workers, and what people ask of one.

import type { FastifyInstance } from 'fastify'
import { ShuffleError } from '../../client/common/errors.ts'
import type { WorkerId } from '../../client/common/ids.ts'
import { managerApi } from '../../client/manager/api.ts'
import { workerPoll, type Cluster } from '../cluster/cluster.ts'
import { summaryOfWorker } from './cluster-routes.ts'
import { pollWaitMaxMs } from './job-routes.ts'
import { registerCall } from './route-registration.ts'

export function registerWorkerRoutes(app: FastifyInstance, cluster: Cluster): void {
  const { clock, options, workers, workerLists } = cluster

  registerCall(
    app,
    { name: 'registerWorker', route: managerApi.registerWorker },
    ({ params, body }) => {
      const nowMs = clock.nowMs()
      const worker = workers.getOrAdd(params.workerId as WorkerId, nowMs)
      workerLists.register(worker, body, nowMs)
      return { heartbeatIntervalMs: options.heartbeatIntervalMs }
    },
  )

  registerCall(
    app,
    { name: 'setWorkerService', route: managerApi.setWorkerService },
    ({ params, body }) => {
      const worker = workers.get(params.workerId as WorkerId)
      if (worker === undefined) {
        throw new ShuffleError(
          'INVALID_ARGUMENT',
          `no worker ${params.workerId} is known to this manager; GET /v1/workers lists them`,
          { fields: { workerId: params.workerId } },
        )
      }
      cluster.workerService.ask(worker, body)
      return summaryOfWorker(worker, clock.nowMs())
    },
  )

  registerCall(
    app,
    { name: 'heartbeatWorker', route: managerApi.heartbeatWorker },
    async ({ params, body }) => {
      const worker = workers.get(params.workerId as WorkerId)
      const isTaken = worker !== undefined && workerLists.heartbeat(worker, body, clock.nowMs())
      if (!isTaken) return { resync: true, commandsNumber: 0, commands: [] }
      const waitMs = worker.commands.isEmpty ? Math.min(body.waitMs, pollWaitMaxMs) : 0
      await cluster.polls.wait(workerPoll(worker.workerId), waitMs)
      if (worker.registration !== body.registration) {
        return { resync: true, commandsNumber: 0, commands: [] }
      }
      const { number, commands } = worker.commands.next((ref) => cluster.ledger.keyOf(ref))
      return { resync: false, commandsNumber: number, commands }
    },
  )
}
