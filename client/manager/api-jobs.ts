// The calls of job masters and task processes.

import { Type, type Static } from 'typebox'
import { defineRoute } from './route.ts'
import {
  DataSetFacts,
  KeyGroups,
  ListGroup,
  Nothing,
  TimeInStateMs,
  WorkerAddresses,
  flag,
  holderColumn,
  id,
  keyColumns,
  pageEntriesMax,
  sequenceColumn,
  text,
  u32,
  u53,
  type KeyGroup,
} from './schemas.ts'

const JobParams = Type.Object({ jobId: id('Job') })
const jobEpoch = u53('The epoch that the registration of the job answered')

/** Commands of a heartbeat's answer to the job master. A type it does not know is reported back. */
export type JobCommand =
  | { readonly type: 'lost'; readonly groups: LostGroup[] }
  | { readonly type: 'asked'; readonly question: number; readonly dataSets: KeyGroup[] }
  | { readonly type: 'committed'; readonly news: number; readonly dataSets: KeyGroup[] }

export interface LostGroup extends KeyGroup {
  readonly workerId: string
  readonly cause: string
}

const JobBeat = Type.Object({
  jobId: id('Job'),
  jobEpoch,
  sequence: u53('Number of the last change of the list that was sent; a gap is answered resync'),
  newsSeen: u53('Number of the last committed command that was taken in'),
  answered: Type.Optional(u53('The question that `claimed` answers')),
  claimed: Type.Optional(KeyGroups),
  dropped: Type.Optional(KeyGroups),
})
export type JobBeat = Static<typeof JobBeat>

export const jobStatuses = ['ok', 'unknown', 'superseded', 'resync'] as const

const JobBeatAnswer = Type.Object({
  jobId: id('Job'),
  status: Type.Union([
    Type.Literal('ok'),
    Type.Literal('unknown'),
    Type.Literal('superseded'),
    Type.Literal('resync'),
  ]),
  commands: Type.Array(Type.Unsafe<JobCommand>(Type.Object({ type: Type.String() }))),
})
export type JobBeatAnswer = Static<typeof JobBeatAnswer>

export const registerJob = defineRoute({
  method: 'PUT',
  path: '/v1/jobs/:jobId',
  about: 'Registers a job. Another living client: JOB_ID_IN_USE unless takeOver is set.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({
    clientId: id('Made once per job master process'),
    tenant: Type.Optional(id('Owner of the job')),
    jobEpoch: Type.Optional(u53('The epoch that this client already has')),
    takeOver: Type.Optional(flag('Take the job from another living client')),
  }),
  answer: Type.Object({
    jobEpoch,
    heartbeatIntervalMs: u53('Longest time between two heartbeats'),
    jobTimeoutMs: u53('A job silent for so long is released'),
  }),
})

export const heartbeatJobs = defineRoute({
  method: 'POST',
  path: '/v1/jobs/heartbeat',
  about: 'All jobs of one job master process; answered when there is something to say.',
  params: Nothing,
  query: Nothing,
  body: Type.Object({
    clientId: id('Client'),
    waitMs: u53('How long the answer may wait for something to say'),
    jobs: Type.Array(JobBeat, { maxItems: pageEntriesMax }),
    unknownCommands: Type.Optional(Type.Array(text('Type of a command that was skipped'))),
  }),
  answer: Type.Object({ jobs: Type.Array(JobBeatAnswer) }),
})

export const allocatePartitions = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/partitions/allocate',
  about: 'Chooses workers. The same key gets the same answer while it lives.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({
    jobEpoch,
    dataSet: DataSetFacts,
    attemptPrefix: keyColumns.attemptPrefix,
    partitionIndices: keyColumns.partitionIndices,
    attempts: keyColumns.attempts,
    hosts: Type.Optional(Type.Array(text('Host of producers'), { maxItems: pageEntriesMax })),
    hostOf: Type.Optional(holderColumn),
  }),
  answer: Type.Object({
    managerEpoch: u53('Of the allocations'),
    jobEpoch,
    workers: WorkerAddresses,
    holders: holderColumn,
    sequences: sequenceColumn,
    older: Type.Optional(
      Type.Array(
        Type.Object({
          position: u32('Position in the columns'),
          managerEpoch: u53('Of an allocation that was made before'),
          jobEpoch,
        }),
      ),
    ),
  }),
})

export const reportPartitions = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/partitions/report',
  about: "The job master's list of what should exist, in pages.",
  params: JobParams,
  query: Nothing,
  body: Type.Object({
    jobEpoch,
    report: id('Names this report; a page of another one begins anew'),
    page: u32('0-based'),
    last: flag('The list is complete with this page'),
    dataSets: Type.Array(DataSetFacts, { maxItems: pageEntriesMax }),
    workers: WorkerAddresses,
    groups: Type.Array(ListGroup, { maxItems: pageEntriesMax }),
  }),
  answer: Nothing,
})

export const releasePartitions = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/partitions/release',
  about: 'Releases by key, or by filter.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({
    jobEpoch: Type.Optional(jobEpoch),
    keys: Type.Optional(KeyGroups),
    filter: Type.Optional(
      Type.Object(
        {
          belowJobEpoch: Type.Optional(u53('All allocated under a lower job epoch')),
          allBut: Type.Optional(KeyGroups),
        },
        {
          minProperties: 1,
          additionalProperties: false,
          description:
            'What fits all that it says; a word that is not known is refused, not skipped',
        },
      ),
    ),
  }),
  answer: Type.Object({ releasedCount: u53('Partitions that this call released') }),
})

export const locatePartitions = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/partitions/locate',
  about: 'Present holders, in the order of the keys.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({ dataSets: KeyGroups }),
  answer: Type.Object({ workers: WorkerAddresses, holders: holderColumn }),
})

export const reportFailures = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/reports',
  about: 'What task processes saw; for the events and the metrics.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({
    failures: Type.Array(
      Type.Object({
        dataSetId: id('Data set'),
        partitionIndex: u32('Partition'),
        attemptId: id('Attempt'),
        workerId: id('Worker'),
        code: text('Code of the error table'),
      }),
      { maxItems: 1000 },
    ),
    timeInStateMs: TimeInStateMs,
  }),
  answer: Nothing,
})

export const describeDataSet = defineRoute({
  method: 'GET',
  path: '/v1/jobs/:jobId/data-sets/:dataSetId',
  about: 'The description of a data set for its consumers: every claimed attempt.',
  params: Type.Object({ jobId: id('Job'), dataSetId: id('Data set') }),
  query: Type.Object({
    knownVersion: Type.Optional(
      Type.String({
        maxLength: 40,
        description: 'Answered without content while it is the present',
      }),
    ),
  }),
  body: undefined,
  answer: Type.Object({
    version: Type.String({ description: 'Changes with the content' }),
    facts: Type.Optional(DataSetFacts),
    workers: WorkerAddresses,
    groups: Type.Array(
      Type.Object({
        state: Type.Union([
          Type.Literal('allocated'),
          Type.Literal('committed'),
          Type.Literal('lost'),
        ]),
        attemptPrefix: keyColumns.attemptPrefix,
        partitionIndices: Type.Array(u32('Partition')),
        attempts: Type.Array(Type.String()),
        holders: Type.Array(Type.Integer({ minimum: 0 })),
      }),
    ),
  }),
})

export const listPartitions = defineRoute({
  method: 'GET',
  path: '/v1/jobs/:jobId/partitions',
  about: 'Where, state and bytes of the partitions of a job, in pages.',
  params: JobParams,
  query: Type.Object({
    after: Type.Optional(
      Type.String({ pattern: '^[0-9]{1,15}$', description: '`next` of a page' }),
    ),
    limit: Type.Optional(
      Type.String({ pattern: '^[1-9][0-9]{0,4}$', description: 'Most to answer' }),
    ),
  }),
  body: undefined,
  answer: Type.Object({
    partitions: Type.Array(
      Type.Object({
        dataSetId: id('Data set'),
        partitionIndex: u32('Partition'),
        attemptId: id('Attempt'),
        workerId: id('Holder'),
        state: text('allocated, writing, committed, lost or releasing'),
        isClaimed: flag("In the job master's list"),
        byteCount: u53('Bytes as stored, 0 before the commit'),
      }),
    ),
    next: Type.Optional(Type.String({ description: 'More follow: give it as `after`' })),
  }),
})

export const detachJob = defineRoute({
  method: 'POST',
  path: '/v1/jobs/:jobId/detach',
  about: 'Keeps the data of the job for a while: the job master will come back.',
  params: JobParams,
  query: Nothing,
  body: Type.Object({ jobEpoch, keepMs: Type.Optional(u53('How long')) }),
  answer: Type.Object({ keepMs: u53('How long the data will be kept') }),
})

export const deleteJob = defineRoute({
  method: 'DELETE',
  path: '/v1/jobs/:jobId',
  about: 'Releases everything of the job.',
  params: JobParams,
  query: Type.Object({
    jobEpoch: Type.Optional(
      Type.String({ pattern: '^[0-9]{1,16}$', description: 'Refused if the job has a higher one' }),
    ),
  }),
  body: undefined,
  answer: Type.Object({ releasedCount: u53('Partitions that this call released') }),
})
