// The manager's HTTP contract: every call, by name. The server registers all of them, the client
// calls them, the OpenAPI document is made from them.

import {
  allocatePartitions,
  deleteJob,
  describeDataSet,
  detachJob,
  heartbeatJobs,
  listPartitions,
  locatePartitions,
  registerJob,
  releasePartitions,
  reportFailures,
  reportPartitions,
} from './api-jobs.ts'
import {
  describeCluster,
  heartbeatWorker,
  listEvents,
  listJobs,
  listWorkers,
  registerWorker,
  setWorkerService,
} from './api-workers.ts'
import { describeProcess, reloadOptions, setLogLevel } from './api-settings.ts'

export const managerApi = {
  registerJob,
  heartbeatJobs,
  allocatePartitions,
  reportPartitions,
  releasePartitions,
  locatePartitions,
  reportFailures,
  describeDataSet,
  listPartitions,
  detachJob,
  deleteJob,
  registerWorker,
  heartbeatWorker,
  setWorkerService,
  listJobs,
  listWorkers,
  describeCluster,
  listEvents,
  describeProcess,
  reloadOptions,
  setLogLevel,
} as const
