// The shuffle manager as its callers see it: typed calls, time-outs on the Clock, retries with
// back-off. Owned by whoever made it: a job master process, a task process, a worker, the command line.

import { setMaxListeners } from 'node:events'
import type { Static } from 'typebox'
import { sleep } from '../common/clock.ts'
import { ShuffleError, isShuffleError, type ErrorCode } from '../common/errors.ts'
import {
  parseWorkerId,
  type AttemptId,
  type ClusterId,
  type DataSetId,
  type JobId,
  type PartitionKey,
  type WorkerId,
} from '../common/ids.ts'
import { JoinedSignal } from '../common/joined-signal.ts'
import type { Logger } from '../common/log.ts'
import type { World } from '../common/world.ts'
import { contentOf } from './answer-content.ts'
import { managerApi } from './api.ts'
import { HttpTransport, type HttpAnswer } from './http-transport.ts'
import { decodeAttempts, encodeKeys, groupBy, inPages } from './key-columns.ts'
import { routeUrl, type CallAnswer, type CallInput, type Route } from './route.ts'
import { headers, pageEntriesMax, type DataSetFacts } from './schemas.ts'

export interface ManagerClientOptions {
  readonly world: Pick<World, 'clock' | 'network' | 'random'>
  readonly logger: Logger
  /** `http://host:port` */
  readonly url: string
  readonly clusterId: ClusterId
  readonly token?: string
  /** A try without an answer by then is given up, and repeated. */
  readonly callTimeoutMs?: number
  /** A call that keeps failing for so long ends with the error of its last try. */
  readonly retryForMs?: number
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** For long polls: how long the server may take on purpose, on top of the time-out. */
  readonly waitMs?: number
  /** Instead of the client's own; 0: one try. */
  readonly retryForMs?: number
}

export interface PartitionLocation {
  readonly workerId: WorkerId
  readonly host: string
  readonly port: number
}

export interface DescribedPartition {
  readonly partitionIndex: number
  readonly attemptId: AttemptId
  readonly state: 'allocated' | 'committed' | 'lost'
  readonly holder: PartitionLocation
}

export interface DataSetDescription {
  readonly version: string
  readonly dataSetId: DataSetId
  /** Undefined while no job master has said them to this manager. */
  readonly facts: DataSetFacts | undefined
  readonly partitions: readonly DescribedPartition[]
}

/** What a task process saw go wrong; for people and the event ring. */
export interface FailureReport {
  readonly key: PartitionKey
  readonly workerId: WorkerId
  readonly code: ErrorCode
}

/** What a Locator needs; ManagerClient is one. */
export interface PartitionLocator {
  /** Present holders, in the order of `keys`; undefined where the manager knows none. */
  locate(
    jobId: JobId,
    keys: readonly PartitionKey[],
  ): Promise<readonly (PartitionLocation | undefined)[]>
}

const callTimeoutDefaultMs = 10_000
const retryForDefaultMs = 10_000

/** First pause between tries; doubled each time up to the maximum, and spread by half at random. */
const backOffFirstMs = 50
const backOffMaxMs = 2_000

/** Failures of one report; more say nothing new. */
const failuresMax = 1_000

export class ManagerClient implements PartitionLocator {
  readonly #world: ManagerClientOptions['world']
  readonly #logger: Logger
  readonly #transport: HttpTransport
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #callTimeoutMs: number
  readonly #retryForMs: number
  /** For pauses between tries; the transport ends the tries. */
  readonly #closed = new AbortController()
  readonly #descriptions = new Map<string, DataSetDescription>()
  #managerEpoch = 0

  /** Throws INVALID_ARGUMENT for an address or a token with which no call can be made. */
  constructor(options: ManagerClientOptions) {
    checkToken(options.token)
    this.#world = options.world
    this.#logger = options.logger
    this.#transport = new HttpTransport({
      network: options.world.network,
      clock: options.world.clock,
      url: options.url,
    })
    this.#url = options.url
    this.#headers = {
      [headers.cluster]: options.clusterId,
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    }
    // Every call that waits for its next try listens to it.
    setMaxListeners(0, this.#closed.signal)
    this.#callTimeoutMs = options.callTimeoutMs ?? callTimeoutDefaultMs
    this.#retryForMs = options.retryForMs ?? retryForDefaultMs
  }

  /** The highest epoch of a manager that has answered; 0 before the first answer. */
  get managerEpoch(): number {
    return this.#managerEpoch
  }

  /**
   * Any call of the contract. All are idempotent, so a try without an answer is repeated, and one
   * that was answered BUSY or NO_MANAGER too, until `retryForMs` has passed.
   */
  async call<R extends Route>(
    route: R,
    input: CallInput<R>,
    options: CallOptions = {},
  ): Promise<CallAnswer<R>> {
    const { clock } = this.#world
    const { signal } = options
    const deadlineMs = clock.nowMs() + (options.retryForMs ?? this.#retryForMs)
    const body = input.body === undefined ? undefined : JSON.stringify(input.body)
    for (let tries = 0; ; tries++) {
      try {
        return await this.#try(route, { input, body, waitMs: options.waitMs ?? 0, signal })
      } catch (error) {
        const pauseMs = this.#pauseMs(tries)
        const isEnded = this.#closed.signal.aborted || signal?.aborted === true
        const isLast = isEnded || clock.nowMs() + pauseMs > deadlineMs
        if (isLast || !isShuffleError(error, 'NO_MANAGER', 'BUSY')) throw error
        this.#logger.debug({ call: route.path, tries, code: error.code }, 'call is repeated')
        await this.#pause(pauseMs, signal)
      }
    }
  }

  async locate(
    jobId: JobId,
    keys: readonly PartitionKey[],
  ): Promise<readonly (PartitionLocation | undefined)[]> {
    const located: (PartitionLocation | undefined)[] = []
    const positions = keys.map((_, position) => position)
    for (const page of inPages(positions, pageEntriesMax)) {
      // The answer is in the order of the groups: so remember where each key came from.
      const groups = groupBy(page, (position) => keyAt(keys, position).dataSetId)
      const ordered = groups.flatMap((group) => group.items)
      const answer = await this.call(managerApi.locatePartitions, {
        params: { jobId },
        query: {},
        body: { dataSets: encodeKeys(ordered.map((position) => keyAt(keys, position))) },
      })
      answer.holders.forEach((holder, index) => {
        const worker = answer.workers[holder]
        const position = ordered[index]
        if (position !== undefined) located[position] = worker && locationOf(worker)
      })
    }
    return keys.map((_, position) => located[position])
  }

  /** The description of a data set as of now; decoded once while it does not change. */
  async describeDataSet(jobId: JobId, dataSetId: DataSetId): Promise<DataSetDescription> {
    const name = `${jobId} ${dataSetId}`
    const known = this.#descriptions.get(name)
    const answer = await this.call(managerApi.describeDataSet, {
      params: { jobId, dataSetId },
      query: known === undefined ? {} : { knownVersion: known.version },
      body: undefined,
    })
    if (known?.version === answer.version) return known
    const description = decodeDescription(dataSetId, answer)
    this.#remember(name, description)
    return description
  }

  /** Bounded and best effort: one try, never rejects. */
  async reportFailures(
    jobId: JobId,
    failures: readonly FailureReport[],
    timeInStateMs: Readonly<Record<string, number>>,
  ): Promise<void> {
    const body = {
      failures: failures.slice(0, failuresMax).map(({ key, workerId, code }) => ({
        dataSetId: key.dataSetId,
        partitionIndex: key.partitionIndex,
        attemptId: key.attemptId,
        workerId,
        code,
      })),
      timeInStateMs: { ...timeInStateMs },
    }
    try {
      const input = { params: { jobId }, query: {}, body }
      await this.call(managerApi.reportFailures, input, { retryForMs: 0 })
    } catch (error) {
      this.#logger.debug({ jobId, error: String(error) }, 'report to the manager dropped')
    }
  }

  /** Ends running calls with CANCELLED and closes the connections. Idempotent. */
  async close(): Promise<void> {
    const reason = new ShuffleError('CANCELLED', 'the manager client was closed')
    this.#closed.abort(reason)
    await this.#transport.close(reason)
  }

  async #pause(pauseMs: number, signal: AbortSignal | undefined): Promise<void> {
    const joined = new JoinedSignal(...(signal === undefined ? [] : [signal]), this.#closed.signal)
    try {
      await sleep(this.#world.clock, pauseMs, joined.signal)
    } finally {
      joined.release()
    }
  }

  async #try<R extends Route>(
    route: R,
    attempt: {
      readonly input: { readonly params: unknown; readonly query: unknown }
      readonly body: string | undefined
      readonly waitMs: number
      readonly signal: AbortSignal | undefined
    },
  ): Promise<CallAnswer<R>> {
    const answer = await this.#transport.request({
      method: route.method,
      url: routeUrl(
        route,
        attempt.input.params as Record<string, string>,
        attempt.input.query as Record<string, string | undefined>,
      ),
      headers: {
        ...this.#headers,
        // A call without a body must not name a type: the server would look for one.
        ...(attempt.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.#managerEpoch === 0 ? {} : { [headers.managerEpoch]: String(this.#managerEpoch) }),
      },
      ...(attempt.body === undefined ? {} : { body: attempt.body }),
      timeoutMs: this.#callTimeoutMs + attempt.waitMs,
      ...(attempt.signal === undefined ? {} : { signal: attempt.signal }),
    })
    this.#noteEpoch(answer)
    return contentOf(route, answer, this.#url) as Static<R['answer']>
  }

  /** Only the highest epoch is obeyed: an older manager is as good as none. */
  #noteEpoch(answer: HttpAnswer): void {
    const epoch = Number(answer.headers[headers.managerEpoch])
    if (!Number.isSafeInteger(epoch)) return
    if (epoch < this.#managerEpoch) {
      throw new ShuffleError('NO_MANAGER', 'an older shuffle manager answered; it is not obeyed', {
        fields: { managerEpoch: epoch, highestEpoch: this.#managerEpoch },
      })
    }
    this.#managerEpoch = epoch
  }

  #pauseMs(tries: number): number {
    const fullMs = Math.min(backOffMaxMs, backOffFirstMs * 2 ** Math.min(tries, 20))
    return fullMs * (0.5 + this.#world.random.float() / 2)
  }

  /** The few data sets that a process reads at a time; the oldest goes first. */
  #remember(name: string, description: DataSetDescription): void {
    this.#descriptions.delete(name)
    this.#descriptions.set(name, description)
    if (this.#descriptions.size <= descriptionsMax) return
    const [oldest] = this.#descriptions.keys()
    if (oldest !== undefined) this.#descriptions.delete(oldest)
  }
}

const descriptionsMax = 16

/** As a header carries it. */
function checkToken(token: string | undefined): void {
  if (token === undefined || /^[\x20-\x7e\x80-\xff]+$/.test(token)) return
  throw new ShuffleError(
    'INVALID_ARGUMENT',
    "the cluster's token has a line break or a character that no HTTP header carries; make it one line of ASCII, on all sides",
  )
}

function decodeDescription(
  dataSetId: DataSetId,
  answer: CallAnswer<typeof managerApi.describeDataSet>,
): DataSetDescription {
  const workers = answer.workers.map(locationOf)
  const partitions: DescribedPartition[] = []
  for (const group of answer.groups) {
    decodeAttempts(group, [group.holders], (partitionIndex, attemptId, position) => {
      const holder = workers[group.holders[position] ?? -1]
      if (holder === undefined) {
        throw new ShuffleError('PROTOCOL', 'a holder is not in the list of workers of its answer')
      }
      partitions.push({ partitionIndex, attemptId, state: group.state, holder })
    })
  }
  return { version: answer.version, dataSetId, facts: answer.facts, partitions }
}

function locationOf(worker: { workerId: string; host: string; port: number }): PartitionLocation {
  return { workerId: parseWorkerId(worker.workerId), host: worker.host, port: worker.port }
}

function keyAt(keys: readonly PartitionKey[], position: number): PartitionKey {
  const key = keys[position]
  if (key === undefined) throw new RangeError(`no key at ${String(position)}`)
  return key
}
