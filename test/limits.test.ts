import { PassThrough } from 'node:stream'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isShuffleError } from '../client/common/errors.ts'
import { idLengthMax, parseJobId } from '../client/common/ids.ts'
import { optionValues } from '../client/common/options.ts'
import { HttpAdmission, type HttpLimits } from '../client/manager/http-admission.ts'
import { bodyBytesMax, pageEntriesMax } from '../client/manager/schemas.ts'
import { FrameDecoder } from '../client/protocol/frame-decoder.ts'
import {
  controlBodyLengthMax,
  dataBodyLengthMax,
  headerLengthMax,
  partitionListEntriesMax,
} from '../client/protocol/limits.ts'
import { messages } from '../client/protocol/messages.ts'
import {
  decodePartitionList,
  encodePartitionList,
  fromBeginning,
} from '../client/protocol/partition-list.ts'
import { RecordAssembler } from '../client/read/record-assembler.ts'
import { defaultEnvironmentOptions } from '../client/shuffle-environment.ts'
import { managerOptions } from '../shuffle-manager/options.ts'
import {
  createApp,
  httpBodyBytesMax,
  httpCallsMax,
  httpConnectionsMax,
} from '../shuffle-worker/http/http-server.ts'
import { workerOptions, type WorkerOptions } from '../shuffle-worker/options.ts'
import { subpartitionCountMax } from '../shuffle-worker/write/write-service.ts'
import type { RawClient } from './shuffle-worker/support/raw-client.ts'
import { WorkerBench } from './shuffle-worker/support/worker-bench.ts'
import { workerHttpParts } from './shuffle-worker/http/support/worker-http-parts.ts'
import { ClusterState, key } from './support/cluster-state.ts'
import { managerApp } from './support/manager-app.ts'
import { VirtualClock } from './support/virtual-clock.ts'

/** `taken`, or what one gets instead. */
type Outcome = string

interface Limit {
  readonly name: string
  readonly value: number
  /** Where it is set; `fixed` where nothing sets it. */
  readonly setBy: string
  /** What one gets past it: a code, or `closed`. */
  readonly past: string
  /** Asks for as much as the limit allows, or one more. */
  ask(isPast: boolean): Outcome | Promise<Outcome>
}

const taken = 'taken'
const worker = optionValues(workerOptions, { dataDirectories: ['/data'] })
const manager = optionValues(managerOptions)

async function outcomeOf(call: () => unknown): Promise<Outcome> {
  try {
    await call()
    return taken
  } catch (error) {
    if (!isShuffleError(error)) throw error
    return error.code
  }
}

async function channelOutcome(
  options: Partial<WorkerOptions>,
  open: (client: RawClient, bench: WorkerBench) => number | Promise<number>,
  taking: 'ReadOpened' | 'WriteOpened' | 'ReadFinish',
): Promise<Outcome> {
  const bench = await WorkerBench.start(options)
  const client = await bench.connect()
  const channelId = await open(client, bench)
  await bench.until(
    () => client.errorOf(channelId) !== undefined || client.first(channelId, taking) !== undefined,
  )
  return client.errorOf(channelId)?.code ?? taken
}

function entries(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    index,
    key: { ...key(index), jobId: parseJobId('job') },
    firstSubpartition: 0,
    lastSubpartition: 0,
    start: fromBeginning,
    isPending: false,
  }))
}

/** The first bytes of a frame: it is refused by them, before anything is kept. */
function frameOutcome(frame: {
  readonly type: number
  readonly headerLength: number
  readonly bodyLength: number
}): Promise<Outcome> {
  const decoder = new FrameDecoder({
    admit: () => undefined,
    bodyBuffer: () => undefined,
    onData: () => undefined,
    onMessage: () => undefined,
  })
  const prefix = Buffer.alloc(12)
  prefix.writeUInt32BE(8 + frame.headerLength + frame.bodyLength, 0)
  prefix.writeUInt8(frame.type, 4)
  prefix.writeUInt16BE(frame.headerLength, 6)
  return outcomeOf(() => {
    decoder.push(prefix)
  })
}

async function readyState(options: ConstructorParameters<typeof ClusterState>[0]) {
  const state = new ClusterState(options)
  state.register('w1')
  await state.clock.advance(6000)
  state.registerJob()
  return state
}

function codeOf(answer: { readonly status: number; readonly body: unknown }): Outcome {
  if (answer.status < 400) return taken
  return (answer.body as { readonly error: { readonly code: string } }).error.code
}

/** Connections of a port that are all in use by calls. */
function connectionOutcome(limits: HttpLimits, isPast: boolean): Outcome {
  const admission = new HttpAdmission(new VirtualClock(), limits)
  const count = limits.connectionsMax + (isPast ? 1 : 0)
  let outcome = taken
  for (let index = 0; index < count; index += 1) {
    const stream = new PassThrough()
    outcome = admission.admit(stream) ? taken : 'closed'
    if (outcome === taken) admission.begin(stream, 0)
  }
  return outcome
}

const many = { connectionsMax: 1e6, callsMax: 1e6, bodiesBytesMax: 1e12 }

const limits: readonly Limit[] = [
  {
    name: "Connections of a worker's data port",
    value: worker.connectionsMax,
    setBy: 'worker connections-max',
    past: 'closed',
    ask: async (isPast) => {
      const bench = await WorkerBench.start({ connectionsMax: 2 })
      await bench.connect()
      if (isPast) await bench.connect()
      return (await bench.connect()).isClosed ? 'closed' : taken
    },
  },
  {
    name: 'Open channels of one connection',
    value: worker.channelsPerConnectionMax,
    setBy: 'worker channels-per-connection-max',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) =>
      channelOutcome(
        { channelsPerConnectionMax: 2 },
        (client) => {
          client.openRead()
          if (isPast) client.openRead()
          return client.openRead()
        },
        'ReadOpened',
      ),
  },
  {
    name: 'Partitions listed by one read channel',
    value: worker.entriesPerChannelMax,
    setBy: 'worker entries-per-channel-max',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) =>
      channelOutcome(
        { entriesPerChannelMax: 3 },
        (client) => {
          const channelId = client.openRead()
          client.addPartitions(channelId, entries(isPast ? 4 : 3))
          client.readEnd(channelId, isPast ? 4 : 3)
          return channelId
        },
        'ReadFinish',
      ),
  },
  {
    name: 'Partitions being written on a worker',
    value: worker.openWritesMax,
    setBy: 'worker open-writes-max',
    past: 'BUSY',
    ask: (isPast) =>
      channelOutcome(
        { openWritesMax: 2 },
        (client, bench) => {
          client.openWrite(bench.key(0))
          if (isPast) client.openWrite(bench.key(1))
          return client.openWrite(bench.key(2))
        },
        'WriteOpened',
      ),
  },
  {
    name: 'Buffer of a data set, bytes',
    value: worker.bufferSizeBytes,
    setBy: 'worker buffer-size',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) =>
      channelOutcome(
        { bufferSizeBytes: 4096 },
        (client, bench) =>
          client.openWrite(bench.key(0), { bufferSizeBytes: isPast ? 4097 : 4096 }),
        'WriteOpened',
      ),
  },
  {
    name: 'Subpartitions of a partition',
    value: subpartitionCountMax,
    setBy: 'fixed',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) =>
      channelOutcome(
        {},
        (client, bench) =>
          client.openWrite(bench.key(0), {
            subpartitionCount: subpartitionCountMax + (isPast ? 1 : 0),
          }),
        'WriteOpened',
      ),
  },
  {
    name: 'Header of a frame, bytes',
    value: headerLengthMax,
    setBy: 'fixed',
    past: 'PROTOCOL',
    ask: (isPast) =>
      frameOutcome({
        type: messages.Ping.id,
        headerLength: headerLengthMax + (isPast ? 1 : 0),
        bodyLength: 0,
      }),
  },
  {
    name: 'Body of a control frame, bytes',
    value: controlBodyLengthMax,
    setBy: 'fixed',
    past: 'PROTOCOL',
    ask: (isPast) =>
      frameOutcome({
        type: messages.AddPartitions.id,
        headerLength: 4,
        bodyLength: controlBodyLengthMax + (isPast ? 1 : 0),
      }),
  },
  {
    name: 'Body of a data frame, bytes',
    value: dataBodyLengthMax,
    setBy: 'fixed',
    past: 'PROTOCOL',
    ask: (isPast) =>
      frameOutcome({
        type: messages.WriteData.id,
        headerLength: 4,
        bodyLength: dataBodyLengthMax + (isPast ? 1 : 0),
      }),
  },
  {
    name: 'Partitions in the list of one frame',
    value: partitionListEntriesMax,
    setBy: 'fixed',
    past: 'PROTOCOL',
    ask: (isPast) => {
      const [first] = encodePartitionList(entries(1))
      // An entry that differs from the one before in nothing but its numbers takes one byte.
      const more = partitionListEntriesMax - (isPast ? 0 : 1)
      const body = Buffer.concat([first?.body ?? Buffer.alloc(0), Buffer.alloc(more)])
      return outcomeOf(() => decodePartitionList(body, 1 + more))
    },
  },
  {
    name: 'Record, bytes',
    value: defaultEnvironmentOptions.recordBytesMax,
    setBy: 'client recordBytesMax',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) => {
      const assembler = new RecordAssembler({ recordBytesMax: 100 })
      const begun = Buffer.alloc(50)
      begun.writeUInt32BE(isPast ? 101 : 100, 0)
      return outcomeOf(() => assembler.add(begun))
    },
  },
  {
    name: 'Id of a job, data set, attempt or worker, characters',
    value: idLengthMax,
    setBy: 'fixed',
    past: 'INVALID_ARGUMENT',
    ask: (isPast) => outcomeOf(() => parseJobId('j'.repeat(idLengthMax + (isPast ? 1 : 0)))),
  },
  {
    name: 'HTTP connections of the manager',
    value: manager.connectionsMax,
    setBy: 'manager connections-max',
    past: 'closed',
    ask: (isPast) => connectionOutcome({ ...many, connectionsMax: 16 }, isPast),
  },
  {
    name: 'HTTP calls under way at the manager',
    value: manager.callsMax,
    setBy: 'manager calls-max',
    past: 'BUSY',
    ask: async (isPast) => {
      const { admission, call } = await managerApp({ limits: { callsMax: 3 } })
      for (let index = 0; index < (isPast ? 3 : 2); index += 1)
        admission.begin(new PassThrough(), 0)
      expect((await call('GET', '/healthz')).status).toBe(200)
      return codeOf(await call('GET', '/v1/jobs'))
    },
  },
  {
    name: 'Bodies of the calls under way at the manager, bytes',
    value: manager.callBodiesBytes,
    setBy: 'manager call-bodies-size',
    past: 'BUSY',
    ask: async (isPast) => {
      const body = { clientId: 'c' }
      const { length } = JSON.stringify(body)
      const { admission, call } = await managerApp({ limits: { bodiesBytesMax: 100 } })
      admission.begin(new PassThrough(), 100 - length + (isPast ? 1 : 0))
      return codeOf(await call('PUT', '/v1/jobs/j', body))
    },
  },
  {
    name: 'Body of one call to the manager, bytes',
    value: bodyBytesMax,
    setBy: 'fixed',
    past: 'LIMIT_EXCEEDED',
    ask: async (isPast) => {
      const { call } = await managerApp()
      const rest = JSON.stringify({ clientId: 'c', unknown: '' }).length
      const unknown = 'x'.repeat(bodyBytesMax - rest + (isPast ? 1 : 0))
      return codeOf(await call('PUT', '/v1/jobs/j', { clientId: 'c', unknown }))
    },
  },
  {
    name: 'Partitions in one list of a call',
    value: pageEntriesMax,
    setBy: 'fixed',
    past: 'INVALID_ARGUMENT',
    ask: async (isPast) => {
      const { call, state } = await managerApp()
      state.register('w1')
      await state.clock.advance(6000)
      state.registerJob()
      const count = pageEntriesMax + (isPast ? 1 : 0)
      return codeOf(
        await call('POST', '/v1/jobs/job/partitions/locate', {
          dataSets: [
            {
              dataSetId: 'd',
              attemptPrefix: 'a',
              partitionIndices: Array.from({ length: count }, (_, index) => index),
              attempts: Array.from({ length: count }, () => ''),
            },
          ],
        }),
      )
    },
  },
  {
    name: 'Jobs',
    value: manager.jobsMax,
    setBy: 'manager jobs-max',
    past: 'LIMIT_EXCEEDED',
    ask: async (isPast) => {
      const { call } = await managerApp({ state: new ClusterState({ jobsMax: 2 }) })
      await call('PUT', '/v1/jobs/j1', { clientId: 'c' })
      if (isPast) await call('PUT', '/v1/jobs/j2', { clientId: 'c' })
      return codeOf(await call('PUT', '/v1/jobs/j3', { clientId: 'c' }))
    },
  },
  {
    name: 'Partitions of one job',
    value: manager.jobPartitionsMax,
    setBy: 'manager job-partitions-max',
    past: 'LIMIT_EXCEEDED',
    ask: async (isPast) => {
      const state = await readyState({ jobPartitionsMax: 10 })
      const keys = Array.from({ length: isPast ? 11 : 10 }, (_, index) => key(index))
      return outcomeOf(() => state.allocate(keys))
    },
  },
  {
    name: 'Bytes that one job holds or expects',
    value: manager.jobMaxBytes,
    setBy: 'manager job-size-max',
    past: 'LIMIT_EXCEEDED',
    ask: async (isPast) => {
      const state = await readyState({ jobMaxBytes: 1000 })
      return outcomeOf(() => state.allocate([key(0)], { expectedBytes: isPast ? 1001 : 1000 }))
    },
  },
  {
    name: 'Workers, lost ones not yet forgotten included',
    value: manager.workersMax,
    setBy: 'manager workers-max',
    past: 'LIMIT_EXCEEDED',
    ask: (isPast) => {
      const state = new ClusterState({ workersMax: 2 })
      state.register('w1')
      if (isPast) state.register('w2')
      return outcomeOf(() => state.register('w3'))
    },
  },
  {
    name: 'HTTP connections of a worker',
    value: httpConnectionsMax,
    setBy: 'fixed',
    past: 'closed',
    ask: (isPast) => connectionOutcome({ ...many, connectionsMax: httpConnectionsMax }, isPast),
  },
  {
    name: 'HTTP calls under way at a worker',
    value: httpCallsMax,
    setBy: 'fixed',
    past: 'BUSY',
    ask: async (isPast) => {
      const parts = workerHttpParts()
      const limits = { ...many, callsMax: httpCallsMax }
      const admission = new HttpAdmission(parts.clock, limits)
      const app = await createApp(parts, { admission })
      for (let index = 0; index < httpCallsMax - (isPast ? 0 : 1); index += 1) {
        admission.begin(new PassThrough(), 0)
      }
      const answer = await app.inject('/v1/status')
      return codeOf({ status: answer.statusCode, body: answer.json() })
    },
  },
  {
    name: 'Body of one call to a worker, bytes',
    value: httpBodyBytesMax,
    setBy: 'fixed',
    past: 'LIMIT_EXCEEDED',
    ask: async (isPast) => {
      const app = await createApp(workerHttpParts())
      const level = 'x'.repeat(httpBodyBytesMax - '{"level":""}'.length + (isPast ? 1 : 0))
      const answer = await app.inject({
        method: 'PUT',
        url: '/v1/process/log-level',
        payload: { level },
      })
      // There is no such level, but it was read.
      const code = codeOf({ status: answer.statusCode, body: answer.json() })
      return code === 'INVALID_ARGUMENT' ? taken : code
    },
  },
]

const table = readFileSync(new URL('../docs/limits.md', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Limit|---)/.test(line))
  .map((line) => {
    const [, name, value, setBy, past] = line.split('|').map((cell) => cell.trim())
    return { name, value, setBy: setBy?.replaceAll('`', ''), past: past?.replaceAll('`', '') }
  })

test('the table of limits says what the code has', () => {
  expect(table).toEqual(
    limits.map(({ name, value, setBy, past }) => ({ name, value: String(value), setBy, past })),
  )
})

test('each option that the table names exists', () => {
  const names = (options: object) =>
    Object.values(options as Record<string, { readonly name: string }>).map(({ name }) => name)
  const known = [
    ...names(workerOptions.options).map((name) => `worker ${name}`),
    ...names(managerOptions.options).map((name) => `manager ${name}`),
    ...Object.keys(defaultEnvironmentOptions).map((name) => `client ${name}`),
  ]
  for (const { setBy } of limits) if (setBy !== 'fixed') expect(known).toContain(setBy)
  // And each option that bounds a number of things, or a job, is in the table.
  const bounds = known.filter((name) => /-max$|job-size/.test(name))
  const elsewhere = ['worker open-files-max', 'manager events-max', 'manager detach-max']
  for (const name of bounds.filter((each) => !elsewhere.includes(each))) {
    expect(limits.map(({ setBy }) => setBy)).toContain(name)
  }
})

describe.each(limits)('$name', ({ ask, past }) => {
  test('at the limit it is taken', async () => {
    expect(await ask(false)).toBe(taken)
  })

  test(`one past it: ${past}`, async () => {
    expect(await ask(true)).toBe(past)
  })
})
