// Calls about partitions: allocate, report, release, locate, describe, list.

import type { FastifyInstance } from 'fastify'
import type { DataSetId, JobId } from '../../client/common/ids.ts'
import { managerApi } from '../../client/manager/api.ts'
import { decodeKeys } from '../../client/manager/key-columns.ts'
import type { KeyGroup } from '../../client/manager/schemas.ts'
import type { CallAnswer } from '../../client/manager/route.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { JobRecord } from '../cluster/job-registry.ts'
import { rowsOf } from '../cluster/job-lists.ts'
import type { ManagerMetrics } from '../manager-metrics.ts'
import { numberOf, registerCall } from './route-registration.ts'

const listLimitDefault = 1_000
const listLimitMax = 10_000

export function registerPartitionRoutes(
  app: FastifyInstance,
  cluster: Cluster,
  metrics: ManagerMetrics,
): void {
  const { jobLists } = cluster

  registerCall(
    app,
    { name: 'allocatePartitions', route: managerApi.allocatePartitions },
    ({ params, body }) => {
      cluster.checkReady()
      const job = jobLists.held(params.jobId as JobId, body.jobEpoch)
      const answer = cluster.allocator.allocate(job, body)
      metrics.allocations.inc(answer.holders.length)
      return answer
    },
  )

  registerCall(
    app,
    { name: 'reportPartitions', route: managerApi.reportPartitions },
    ({ params, body }) => {
      const job = jobLists.held(params.jobId as JobId, body.jobEpoch)
      jobLists.report(job, body, cluster.clock.nowMs())
      return {}
    },
  )

  registerCall(
    app,
    { name: 'releasePartitions', route: managerApi.releasePartitions },
    ({ params, body }) => {
      const jobId = params.jobId as JobId
      const job =
        body.jobEpoch === undefined ? cluster.job(jobId) : jobLists.held(jobId, body.jobEpoch)
      const releasedCount = jobLists.release(job, body)
      metrics.releases.inc(releasedCount)
      return { releasedCount }
    },
  )
  registerQueries(app, cluster)
}

/** Those that change nothing. */
function registerQueries(app: FastifyInstance, cluster: Cluster): void {
  registerCall(
    app,
    { name: 'locatePartitions', route: managerApi.locatePartitions },
    ({ params, body }) => locate(cluster, cluster.job(params.jobId as JobId), body.dataSets),
  )

  registerCall(
    app,
    { name: 'describeDataSet', route: managerApi.describeDataSet },
    ({ params, query }) => {
      const job = cluster.job(params.jobId as JobId)
      const table = job.tables.get(params.dataSetId as DataSetId)
      return cluster.descriptions.describe(table, query.knownVersion)
    },
  )

  registerCall(
    app,
    { name: 'listPartitions', route: managerApi.listPartitions },
    ({ params, query }) =>
      list(cluster, cluster.job(params.jobId as JobId), {
        after: numberOf(query.after, 0),
        limit: Math.min(numberOf(query.limit, listLimitDefault), listLimitMax),
      }),
  )
}

function locate(
  cluster: Cluster,
  job: JobRecord,
  dataSets: readonly KeyGroup[],
): CallAnswer<typeof managerApi.locatePartitions> {
  const workers: CallAnswer<typeof managerApi.locatePartitions>['workers'] = []
  const positions = new Map<number, number>()
  const holders = decodeKeys(dataSets).map((key) => {
    const at = cluster.ledger.find(job, key)
    const state = at?.table.state(at.row)
    if (at === undefined || state === 'lost' || state === 'releasing') return -1
    const number = at.table.worker(at.row)
    const worker = cluster.workers.at(number)
    if (worker.state === 'lost' || worker.host === '') return -1
    const position = positions.get(number) ?? workers.push(worker.address) - 1
    positions.set(number, position)
    return position
  })
  return { workers, holders }
}

/** Pages by position: what comes and goes meanwhile may be missed or seen twice. */
function list(
  cluster: Cluster,
  job: JobRecord,
  page: { readonly after: number; readonly limit: number },
): CallAnswer<typeof managerApi.listPartitions> {
  const partitions: CallAnswer<typeof managerApi.listPartitions>['partitions'] = []
  let position = 0
  for (const { table, row } of rowsOf(job)) {
    if (position++ < page.after) continue
    if (partitions.length === page.limit) {
      return { partitions, next: String(page.after + page.limit) }
    }
    partitions.push({
      dataSetId: table.dataSetId,
      partitionIndex: table.index(row),
      attemptId: table.attemptId(row),
      workerId: cluster.workers.at(table.worker(row)).workerId,
      state: table.state(row),
      isClaimed: table.has(row, 'claimed'),
      byteCount: table.bytes(row),
    })
  }
  return { partitions }
}
