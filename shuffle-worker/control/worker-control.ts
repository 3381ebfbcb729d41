// The worker as the manager knows it: registers with the full list, then heartbeats. A long poll waits
// for commands; a change of the list is told at once, in a call of its own, which ends the poll. A
// manager that is away changes nothing for writes, reads and commits. Owned by the worker.
//
//   DataStore ─onChange─> ListChanges ─delta─> manager ─commands─> DataStore.release, confirmReleased

import { sleep, type Clock } from '../../client/common/clock.ts'
import { ShuffleError, isShuffleError } from '../../client/common/errors.ts'
import type { Logger } from '../../client/common/log.ts'
import { randomHex } from '../../client/common/random.ts'
import type { World } from '../../client/common/world.ts'
import { managerApi } from '../../client/manager/api.ts'
import { pagesOfGroups } from '../../client/manager/list-pages.ts'
import type { ManagerClient } from '../../client/manager/manager-client.ts'
import type { CallAnswer, CallInput } from '../../client/manager/route.ts'
import type { ServiceRecord, TimeInStateMs } from '../../client/manager/schemas.ts'
import type { PartitionReport, StoreChange } from '../storage/storage-types.ts'
import { toldStatus, type ControlledStore } from './controlled-store.ts'
import { ListChanges, noAllocation, reportGroups, type ReportRow } from './list-changes.ts'
import { execute } from './manager-commands.ts'

/** `for-ever`: the data does not come back; it counts as lost at once. */
export type Leaving = 'for-a-while' | 'for-ever'

export interface WorkerControlOptions {
  readonly world: Pick<World, 'clock' | 'random'>
  readonly logger: Logger
  /** Owned by the caller: closed by whoever made it. */
  readonly managerClient: ManagerClient
  readonly store: ControlledStore
  /** Advertised: a name, resolved at each dial. */
  readonly host: string
  readonly dataPort: number
  readonly httpPort?: number
  readonly version: string
  /** Writes that are open now. */
  readonly openWrites?: () => number
  /** People took the worker out of service, or put it back. */
  readonly onService?: (record: ServiceRecord) => void
  /** Sums by job since the last call; told with each poll, dropped when the manager is away. */
  readonly takeTimeInState?: () => Readonly<Record<string, TimeInStateMs>>
}

type Beat = CallInput<typeof managerApi.heartbeatWorker>['body']
type BeatAnswer = CallAnswer<typeof managerApi.heartbeatWorker>

/** Until the manager says its own. */
const heartbeatIntervalDefaultMs = 5_000
/** Between calls that fail. */
const pauseMs = 500
/** The last words of a worker that stops are tried for so long. */
const leaveForMs = 1_000
const typesToldMax = 16

export class WorkerControl {
  readonly #options: WorkerControlOptions
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #client: ManagerClient
  readonly #store: ControlledStore
  readonly #changes = new ListChanges()
  readonly #closed = new AbortController()
  readonly #unknownCommands = new Set<string>()
  #heartbeatIntervalMs = heartbeatIntervalDefaultMs
  #registration: string | undefined
  #registrationNumber = 0
  #commandsSeen = 0
  #isStatusDue = false
  /** Kept on the disks: what the manager is told. */
  #keptService: ServiceRecord
  #isStopping = false
  #poll: Promise<void> | undefined
  #wake: (() => void) | undefined
  /** Code of the failure that was told last; undefined when the manager has answered since. */
  #failureTold: string | undefined
  #loop: Promise<void> | undefined

  constructor(options: WorkerControlOptions) {
    this.#options = options
    this.#clock = options.world.clock
    this.#logger = options.logger
    this.#client = options.managerClient
    this.#store = options.store
    this.#keptService = options.store.service
    this.#store.onChange((change) => {
      this.#take(change)
    })
  }

  /** Whether the manager has the worker's list. */
  get isRegistered(): boolean {
    return this.#registration !== undefined
  }

  /** Registers in the background, for as long as it takes. */
  start(): void {
    this.#loop ??= this.#run()
  }

  /** Takes no new partitions from now on, until the process ends; the manager is told at once. */
  drain(): void {
    this.#isStopping = true
    this.tellStatus()
  }

  /** The manager hears at once how the worker is. */
  tellStatus(): void {
    this.#isStatusDue = true
    this.#wake?.()
  }

  /** Tells the manager, if it is there, and stops. Idempotent. */
  async stop(leaving: Leaving): Promise<void> {
    if (this.#closed.signal.aborted) return
    this.#closed.abort(new ShuffleError('CANCELLED', 'the worker stops'))
    this.#wake?.()
    await this.#loop
    await this.#poll
    if (this.#registration === undefined) return
    try {
      await this.#send({ leaving, waitMs: 0 }, { retryForMs: leaveForMs })
    } catch (error) {
      this.#logger.info({ error: String(error) }, 'the manager could not be told of the stop')
    }
  }

  get #isStopped(): boolean {
    return this.#closed.signal.aborted
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) await this.#roundOrPause(this.#closed.signal)
  }

  async #roundOrPause(signal: AbortSignal): Promise<void> {
    try {
      await this.#round(signal)
    } catch (error) {
      if (this.#isStopped) return
      this.#logFailure(error)
      await this.#pause(signal)
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    if (this.#registration === undefined) {
      await this.#register(signal)
      return
    }
    if (!this.#changes.isEmpty || this.#isStatusDue) {
      await this.#tellChanges(signal)
      return
    }
    const poll = (this.#poll ??= this.#pollCommands(signal))
    await Promise.race([poll, new Promise<void>((resolve) => (this.#wake = resolve))])
    this.#wake = undefined
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { host, dataPort, httpPort, version } = this.#options
    const registration = `registration-${randomHex(this.#options.world.random, 8)}`
    const number = ++this.#registrationNumber
    this.#changes.restart()
    const pages = pagesOfGroups(reportGroups(rowsOf(this.#store.list())))
    for (const [page, groups] of pages.entries()) {
      const answer = await this.#client.call(
        managerApi.registerWorker,
        {
          params: { workerId: this.#store.workerId },
          query: {},
          body: {
            workerEpoch: this.#store.workerEpoch,
            registration,
            number,
            page,
            last: page === pages.length - 1,
            host,
            port: dataPort,
            ...(httpPort === undefined ? {} : { httpPort }),
            version,
            ...this.#service(),
            directories: this.#store.directories.map(toldStatus),
            groups,
          },
        },
        { signal },
      )
      this.#heartbeatIntervalMs = answer.heartbeatIntervalMs
    }
    this.#registration = registration
    this.#failureTold = undefined
    this.#commandsSeen = 0
    this.#isStatusDue = false
    this.#logger.info({ workerId: this.#store.workerId }, 'registered with the manager')
  }

  /** One delta; the next waits for its answer, so that they arrive in order. */
  async #tellChanges(signal: AbortSignal): Promise<void> {
    const delta = this.#changes.next()
    this.#isStatusDue = false
    const content = {
      waitMs: 0,
      ...(delta === undefined ? {} : { sequence: delta.sequence, delta: delta.groups }),
    }
    try {
      const answer = await this.#send(content, { signal, retryForMs: 0 })
      if (!answer.resync && delta !== undefined) this.#changes.answered(delta)
    } catch (error) {
      this.#isStatusDue = true
      throw error
    }
  }

  /** Never rejects: a poll outlives the round that began it. */
  async #pollCommands(signal: AbortSignal): Promise<void> {
    try {
      const sums = this.#options.takeTimeInState?.() ?? {}
      const timeInStateMs = Object.keys(sums).length === 0 ? {} : { timeInStateMs: { ...sums } }
      const content = { waitMs: this.#heartbeatIntervalMs, ...timeInStateMs }
      await this.#send(content, { signal, retryForMs: 0 })
    } catch (error) {
      if (signal.aborted) return
      this.#logFailure(error)
      await this.#pause(signal)
    } finally {
      this.#poll = undefined
    }
  }

  async #send(
    content: Partial<Beat> & { readonly waitMs: number },
    options: { readonly signal?: AbortSignal; readonly retryForMs: number },
  ): Promise<BeatAnswer> {
    const registration = this.#registration ?? ''
    const unknownCommands = [...this.#unknownCommands]
    this.#unknownCommands.clear()
    const answer = await this.#client.call(
      managerApi.heartbeatWorker,
      {
        params: { workerId: this.#store.workerId },
        query: {},
        body: {
          workerEpoch: this.#store.workerEpoch,
          registration,
          sequence: this.#changes.sequence,
          commandsSeen: this.#commandsSeen,
          directories: this.#store.directories.map(toldStatus),
          ...this.#service(),
          openWrites: this.#options.openWrites?.() ?? 0,
          ...(unknownCommands.length === 0 ? {} : { unknownCommands }),
          ...content,
        },
      },
      { ...options, waitMs: content.waitMs },
    )
    this.#noteAnswer()
    if (this.#registration === registration) this.#takeAnswer(answer)
    return answer
  }

  #takeAnswer(answer: BeatAnswer): void {
    if (answer.resync) {
      this.#registration = undefined
      this.#wake?.()
      return
    }
    if (answer.commandsNumber <= this.#commandsSeen) return
    this.#commandsSeen = answer.commandsNumber
    const unknown = execute(answer.commands, this.#store, (record) => {
      this.#setService(record)
    })
    for (const type of unknown) {
      if (this.#unknownCommands.size < typesToldMax) this.#unknownCommands.add(type)
    }
  }

  #service(): { readonly isDraining: boolean; readonly service: ServiceRecord } {
    const isDraining = this.#isStopping || this.#store.service.state === 'draining'
    return { isDraining, service: this.#keptService }
  }

  /** The manager is told once it is kept: from then on no restart forgets it. */
  #setService(record: ServiceRecord): void {
    if (record.number <= this.#store.service.number) {
      this.tellStatus()
      return
    }
    this.#logger.info({ workerId: this.#store.workerId, ...record }, 'in or out of service')
    const kept = this.#store.setService(record)
    this.#options.onService?.(record)
    void kept.then((record) => {
      this.#keptService = record
      this.tellStatus()
    })
  }

  #take(change: StoreChange): void {
    switch (change.kind) {
      case 'opened':
      case 'aborted':
        // The job master learns of both from the producer; a zombie's write shows when it commits.
        return
      case 'committed':
        for (const row of rowsOf([change.partition])) this.#changes.add(row)
        break
      case 'released':
        this.#addGone(change.keys, { state: 'released' })
        break
      case 'lost':
        this.#addGone(change.keys, { state: 'lost', cause: change.cause })
        break
      case 'directory':
        this.#isStatusDue = true
    }
    this.#wake?.()
  }

  #addGone(keys: readonly PartitionReport['key'][], how: Pick<ReportRow, 'state' | 'cause'>): void {
    for (const key of keys) {
      this.#changes.add({ key, allocation: noAllocation, byteCount: 0, ...how })
    }
  }

  /** Told once until the manager takes something again, or another error comes. */
  #logFailure(error: unknown): void {
    const isAway = isShuffleError(error, 'NO_MANAGER', 'BUSY')
    // Registering again is the cure for whatever a restart or a gap may have done.
    if (!isAway) this.#registration = undefined
    const code = isShuffleError(error) ? error.code : String(error)
    const level = code === this.#failureTold ? 'debug' : 'warn'
    this.#failureTold = code
    this.#logger[level](
      { workerId: this.#store.workerId, error: String(error) },
      isAway
        ? 'the manager does not answer; it is asked until it does'
        : 'the manager refuses the worker, which registers again',
    )
  }

  #noteAnswer(): void {
    if (this.#failureTold === undefined) return
    this.#failureTold = undefined
    this.#logger.info({ workerId: this.#store.workerId }, 'the manager answers again')
  }

  async #pause(signal: AbortSignal): Promise<void> {
    try {
      await sleep(this.#clock, pauseMs, signal)
    } catch {
      // Stopped meanwhile: the loop sees it.
    }
  }
}

/**
 * What the manager is told. One that is being released is neither here nor gone: when its readers are
 * done it is told as released.
 */
function* rowsOf(reports: Iterable<PartitionReport>): Generator<ReportRow> {
  for (const { key, allocation, state, byteCount } of reports) {
    if (state !== 'releasing') yield { key, allocation, state, byteCount }
  }
}
