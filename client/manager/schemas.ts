// The pieces that the calls of the manager's HTTP contract share. A schema is declared once: it
// validates, gives the TypeScript type, and makes the OpenAPI document.
//
// Lists of partitions travel as columns under one head that says once what they have in common, and
// attempt ids without their common prefix: 10,000 partitions with Flink's ids take 0.2 MB, not 1 MB.

import { Type, type Static } from 'typebox'
import { idLengthMax } from '../common/ids.ts'

/** Longest body of a request. Longer lists are numbered pages with a `last` flag. */
export const bodyBytesMax = 4 * 1024 * 1024

/** Most partitions in one list of a request: with the longest ids it stays below the body limit. */
export const pageEntriesMax = 10_000

const idPattern = '^[\\x21-\\x7e]{1,200}$'

export const id = (description: string) => Type.String({ pattern: idPattern, description })
export const u32 = (description: string) =>
  Type.Integer({ minimum: 0, maximum: 0xffff_ffff, description })
export const u53 = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })
export const flag = (description: string) => Type.Boolean({ description })
export const text = (description: string) => Type.String({ maxLength: 1000, description })
export const port = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 65_535, description })

const column = <T extends ReturnType<typeof u53> | ReturnType<typeof Type.String>>(item: T) =>
  Type.Array(item, { maxItems: pageEntriesMax })

/** The columns that name partitions of one data set. Equal lengths; checked when decoded. */
export const keyColumns = {
  dataSetId: id('Data set of all partitions in these columns'),
  attemptPrefix: Type.String({
    maxLength: idLengthMax,
    description: 'What all attempt ids of the columns begin with',
  }),
  partitionIndices: column(u32('Index of the producer in the data set')),
  attempts: column(Type.String({ maxLength: idLengthMax, description: 'Rest of the attempt id' })),
}

export const KeyGroup = Type.Object(keyColumns)
export type KeyGroup = Static<typeof KeyGroup>

export const KeyGroups = Type.Array(KeyGroup, { maxItems: pageEntriesMax })

export const JobKeyGroups = Type.Object({ jobId: id('Job of the keys'), dataSets: KeyGroups })
export type JobKeyGroups = Static<typeof JobKeyGroups>

export const sequenceColumn = column(u53('Sequence of the allocation'))
export const byteColumn = column(u53('Bytes as stored'))
export const holderColumn = Type.Array(
  Type.Integer({
    minimum: -1,
    maximum: 0xffff_ffff,
    description: 'Position in `workers`; -1: none',
  }),
  { maxItems: pageEntriesMax },
)

/** What is the same for all partitions of a data set; said once. */
export const DataSetFacts = Type.Object({
  dataSetId: id('Data set'),
  totalPartitions: Type.Integer({ minimum: 1, maximum: 10_000_000, description: 'Producers' }),
  subpartitionCount: Type.Integer({ minimum: 1, maximum: 0xffff_ffff, description: 'Consumers' }),
  isBroadcast: flag('Every consumer reads everything'),
  expectedBytes: Type.Optional(u53('Bytes of one partition, where known')),
  diskKind: Type.Optional(
    Type.Union([Type.Literal('hdd'), Type.Literal('ssd')], { description: 'Only such disks' }),
  ),
})
export type DataSetFacts = Static<typeof DataSetFacts>

export const WorkerAddress = Type.Object({
  workerId: id('Worker'),
  host: Type.String({ minLength: 1, maxLength: 255, description: 'A name, resolved at each dial' }),
  port: port('Data port'),
})
export type WorkerAddress = Static<typeof WorkerAddress>

export const WorkerAddresses = Type.Array(WorkerAddress, { maxItems: pageEntriesMax })

export const DirectoryStatus = Type.Object({
  name: text('Position or path of the directory, for people'),
  kind: Type.Union([Type.Literal('hdd'), Type.Literal('ssd'), Type.Literal('memory')]),
  health: Type.Union([Type.Literal('healthy'), Type.Literal('suspect'), Type.Literal('failed')]),
  isFull: flag('Closed to new partitions for want of space'),
  freeBytes: u53('Bytes that new partitions may still take'),
  totalBytes: u53('Size of the file system'),
  fileSystem: Type.Optional(
    text('Names the file system; the same for two directories that share the space of one'),
  ),
})
export type DirectoryStatus = Static<typeof DirectoryStatus>

export const serviceStates = ['serving', 'excluded', 'draining'] as const
export type ServiceState = (typeof serviceStates)[number]

/**
 * What people want of a worker. It is the worker that keeps it, on its disks, and tells it at each
 * registration: so it outlives the manager, which keeps nothing, and the worker's own restarts.
 * - `serving`: chosen for new partitions
 * - `excluded`: not chosen; what was placed there already is written and read
 * - `draining`: not chosen, and refuses to open what was placed there; reads go on
 */
export const ServiceRecord = Type.Object({
  state: Type.Union([Type.Literal('serving'), Type.Literal('excluded'), Type.Literal('draining')], {
    description: 'In service; not chosen; not chosen and refusing to open writes',
  }),
  reason: Type.String({ maxLength: 500, description: 'Why, in the words of who asked for it' }),
  number: u53('Of several the one with the highest number counts'),
})
export type ServiceRecord = Static<typeof ServiceRecord>

export const servingFromTheStart: ServiceRecord = { state: 'serving', reason: '', number: 0 }

/** State of a partition in a worker's list. */
export const reportStates = ['writing', 'committed', 'released', 'lost'] as const
export type ReportState = (typeof reportStates)[number]

/** Partitions of a worker's list or delta that share job, data set, state and epochs. */
export const ReportGroup = Type.Object({
  jobId: id('Job'),
  ...keyColumns,
  state: Type.Union([
    Type.Literal('writing'),
    Type.Literal('committed'),
    Type.Literal('released'),
    Type.Literal('lost'),
  ]),
  cause: Type.Optional(text('Why the partitions were lost')),
  managerEpoch: u53('Of the allocations'),
  jobEpoch: u53('Of the allocations'),
  sequences: sequenceColumn,
  byteCounts: byteColumn,
})
export type ReportGroup = Static<typeof ReportGroup>

/** Partitions of a job master's list that share data set, worker, epochs and what is known of them. */
export const ListGroup = Type.Object({
  ...keyColumns,
  workerId: id('Holder'),
  managerEpoch: u53('Of the allocations'),
  jobEpoch: u53('Of the allocations'),
  isCommitted: flag('The job master was told of their commit'),
  sequences: sequenceColumn,
})
export type ListGroup = Static<typeof ListGroup>

/** Milliseconds by state, summed since the last report. */
export const TimeInStateMs = Type.Record(
  Type.String({ maxLength: 64 }),
  Type.Number({ minimum: 0 }),
  { description: 'Milliseconds by state since the last report' },
)
export type TimeInStateMs = Static<typeof TimeInStateMs>

export const ErrorAnswer = Type.Object({
  error: Type.Object({
    code: Type.String({ description: 'A code of the error table' }),
    message: Type.String({ description: 'What was wrong, where, what to do' }),
    fields: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
  }),
})
export type ErrorAnswer = Static<typeof ErrorAnswer>

export const Nothing = Type.Object({})

/** Names of the headers that every request and every answer carries. */
export const headers = {
  cluster: 'sluice-cluster',
  /** On a request the highest manager epoch its sender has seen; on an answer the manager's own. */
  managerEpoch: 'sluice-manager-epoch',
} as const
