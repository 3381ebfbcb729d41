// The calls of shuffle workers, and those for people and tools.

import { Type, type Static } from 'typebox'
import { defineRoute } from './route.ts'
import {
  DirectoryStatus,
  Nothing,
  ReportGroup,
  ServiceRecord,
  TimeInStateMs,
  flag,
  id,
  pageEntriesMax,
  port,
  text,
  u32,
  u53,
  type JobKeyGroups,
} from './schemas.ts'

const WorkerParams = Type.Object({ workerId: id('Worker') })
const workerEpoch = u53('Raised at each start of the worker')
const registration = id('Names this registration; deltas belong to it')
const Directories = Type.Array(DirectoryStatus, { maxItems: 1000 })
const Groups = Type.Array(ReportGroup, { maxItems: pageEntriesMax })

/** Commands of an answer to a worker. A type it does not know is reported back. */
export type WorkerCommand =
  | { readonly type: 'release'; readonly jobs: JobKeyGroups[] }
  | { readonly type: 'confirm-released'; readonly jobs: JobKeyGroups[] }
  | { readonly type: 'service'; readonly service: ServiceRecord }

export const registerWorker = defineRoute({
  method: 'PUT',
  path: '/v1/workers/:workerId',
  about: 'Registers a worker with the full list of its partitions, in pages.',
  params: WorkerParams,
  query: Nothing,
  body: Type.Object({
    workerEpoch,
    registration,
    number: Type.Optional(
      u53('Ascends with the registrations of one start of the worker: a late one is refused'),
    ),
    page: u32('0-based'),
    last: flag('The list is complete with this page'),
    host: Type.String({ minLength: 1, maxLength: 255, description: 'Advertised name' }),
    port: port('Data port'),
    httpPort: Type.Optional(port('HTTP port')),
    version: text('Version of the worker'),
    isDraining: flag('Takes no new partitions: it stops, or was told to drain'),
    service: Type.Optional(ServiceRecord),
    directories: Directories,
    groups: Groups,
  }),
  answer: Type.Object({ heartbeatIntervalMs: u53('Longest time between two heartbeats') }),
})

export const heartbeatWorker = defineRoute({
  method: 'POST',
  path: '/v1/workers/:workerId/heartbeat',
  about: 'Sign of life and changes of the list; answered when there is something to do.',
  params: WorkerParams,
  query: Nothing,
  body: Type.Object({
    workerEpoch,
    registration,
    waitMs: u53('How long the answer may wait for something to do'),
    sequence: u53('Number of the last delta that was sent, this one included'),
    delta: Type.Optional(Groups),
    commandsSeen: u53('Number of the last commands that were taken in'),
    directories: Type.Optional(Directories),
    isDraining: Type.Optional(flag('Takes no new partitions: it stops, or was told to drain')),
    service: Type.Optional(ServiceRecord),
    openWrites: Type.Optional(u53('Partitions that are being written')),
    leaving: Type.Optional(
      Type.Union([Type.Literal('for-a-while'), Type.Literal('for-ever')], {
        description: 'The worker stops; for ever: its data does not come back',
      }),
    ),
    timeInStateMs: Type.Optional(
      Type.Record(Type.String({ maxLength: 200 }), TimeInStateMs, { description: 'By job' }),
    ),
    unknownCommands: Type.Optional(Type.Array(text('Type of a command that was skipped'))),
  }),
  answer: Type.Object({
    resync: flag('The deltas have a gap, or the worker is not known: register again'),
    commandsNumber: u53('To be repeated as `commandsSeen` once taken in'),
    commands: Type.Array(Type.Unsafe<WorkerCommand>(Type.Object({ type: Type.String() }))),
  }),
})

export const JobSummary = Type.Object({
  jobId: id('Job'),
  tenant: Type.Optional(id('Owner')),
  clientId: Type.Optional(id('Client that holds the job; none: known from workers alone')),
  jobEpoch: u53('Epoch of the registration'),
  state: text('registered, detached, unclaimed or ending'),
  dataSetCount: u53('Data sets'),
  partitionCount: u53('Partitions of all states'),
  committedCount: u53('Committed partitions'),
  lostCount: u53('Lost partitions not yet dropped from the list'),
  releasingCount: u53('Partitions on their way out'),
  byteCount: u53('Committed bytes'),
  silentMs: u53('Since the last heartbeat'),
  releaseInMs: u53('Until the job is released, if it stays silent'),
  timeInStateMs: TimeInStateMs,
})
export type JobSummary = Static<typeof JobSummary>

export const WorkerSummary = Type.Object({
  workerId: id('Worker'),
  workerEpoch,
  host: text('Advertised name'),
  port: u32('Data port'),
  httpPort: Type.Optional(port('HTTP port')),
  version: text('Version'),
  state: text('expected, registering, alive, suspect or lost'),
  isDraining: flag('Takes no new partitions: it stops, or was told to drain'),
  service: ServiceRecord,
  isServiceTold: flag('The worker knows `service`, and keeps it through restarts'),
  openWrites: u53('Partitions that are being written, as the worker said last'),
  partitionCount: u53('Partitions placed there'),
  byteCount: u53('Committed bytes'),
  silentMs: u53('Since the last sign of life'),
  directories: Directories,
})
export type WorkerSummary = Static<typeof WorkerSummary>

export const setWorkerService = defineRoute({
  method: 'PUT',
  path: '/v1/workers/:workerId/service',
  about:
    'Takes a worker out of service or back: excluded, draining or serving. Kept by the worker, through its restarts and those of the manager.',
  params: WorkerParams,
  query: Nothing,
  body: Type.Object({
    state: ServiceRecord.properties.state,
    reason: Type.Optional(ServiceRecord.properties.reason),
    isLost: Type.Optional(
      flag('Counts its data as lost at once; only of a worker that is silent, with `excluded`'),
    ),
  }),
  answer: WorkerSummary,
})

/** An event as it is told; more fields by type. */
export const EventRecord = Type.Object(
  {
    number: u53('Ascends by one'),
    wallMs: u53('When'),
    type: text('Kind of the event'),
  },
  { additionalProperties: true },
)
export type EventRecord = Static<typeof EventRecord> & Readonly<Record<string, unknown>>

export const listJobs = defineRoute({
  method: 'GET',
  path: '/v1/jobs',
  about: 'All jobs.',
  params: Nothing,
  query: Nothing,
  body: undefined,
  answer: Type.Object({ jobs: Type.Array(JobSummary) }),
})

export const listWorkers = defineRoute({
  method: 'GET',
  path: '/v1/workers',
  about: 'All workers.',
  params: Nothing,
  query: Nothing,
  body: undefined,
  answer: Type.Object({ workers: Type.Array(WorkerSummary) }),
})

export const describeCluster = defineRoute({
  method: 'GET',
  path: '/v1/cluster',
  about: 'The cluster in figures.',
  params: Nothing,
  query: Nothing,
  body: undefined,
  answer: Type.Object({
    clusterId: id('Cluster'),
    managerEpoch: u53('Epoch of the manager'),
    version: text('Version of the manager'),
    upMs: u53('Since the start'),
    isReady: flag('Allocates'),
    reason: text('Why it does not'),
    wallMs: u53("Clock of the manager's machine"),
    workerCounts: Type.Record(Type.String(), u53('Workers')),
    jobCount: u53('Jobs'),
    partitionCount: u53('Partitions of all states'),
    byteCount: u53('Committed bytes'),
    freeBytes: u53('Free bytes of healthy directories'),
  }),
})

export const listEvents = defineRoute({
  method: 'GET',
  path: '/v1/events',
  about: 'The latest events, oldest first.',
  params: Nothing,
  query: Type.Object({
    after: Type.Optional(Type.String({ pattern: '^[0-9]{1,16}$', description: 'Only later ones' })),
    limit: Type.Optional(
      Type.String({ pattern: '^[1-9][0-9]{0,4}$', description: 'Most to answer' }),
    ),
  }),
  body: undefined,
  answer: Type.Object({
    events: Type.Array(EventRecord),
    forgotten: u53('Older events that the ring no longer has'),
  }),
})
