// One job of a ShuffleMaster: the list of what should exist, and what of it the manager has not been
// told yet. Owned by the ShuffleMaster.

import {
  partitionKeyText,
  parseWorkerId,
  type DataSetId,
  type JobId,
  type PartitionKey,
  type PartitionKeyText,
} from '../common/ids.ts'
import type { JobBeat, JobCommand } from '../manager/api-jobs.ts'
import {
  decodeAttempts,
  decodeKeys,
  encodeAttempts,
  encodeKeys,
  groupBy,
  inPages,
} from '../manager/key-columns.ts'
import { groupRowsMax } from '../manager/list-pages.ts'
import type { DataSetFacts, ListGroup, WorkerAddress } from '../manager/schemas.ts'
import type { ShuffleDescriptor } from './shuffle-descriptor.ts'
import type { JobShuffleContext, LostPartition } from './shuffle-master-types.ts'

interface ListEntry {
  readonly descriptor: ShuffleDescriptor
  readonly facts: DataSetFacts
  isCommitted: boolean
}

/** A change of the list, as a heartbeat carries it. */
type ListChange = Pick<JobBeat, 'sequence' | 'claimed' | 'dropped'>

/** Changes that one heartbeat carries: with the longest ids below the body limit. */
const changesPerBeatMax = 4_000

export class MasterJob {
  readonly context: JobShuffleContext
  readonly #entries = new Map<PartitionKeyText, ListEntry>()
  /** Asked for and not answered yet: claimed too. */
  readonly #allocating = new Map<PartitionKeyText, number>()
  readonly #dropped = new Map<PartitionKeyText, PartitionKey>()
  readonly #releases = new Map<PartitionKeyText, PartitionKey>()
  readonly #unknownCommands = new Set<string>()
  #claimed: PartitionKey[] = []
  #answered: number | undefined
  #newsSeen = 0
  #sequence = 0
  /** The change under way; sent again, as it is, until it is answered. */
  #sent: ListChange | undefined
  #sentBytes = 0
  #isReporting = false
  jobEpoch: number | undefined
  /** Manager epoch to which the list was reported; undefined: it has to be. */
  reportedTo: number | undefined
  isEnded = false

  constructor(context: JobShuffleContext) {
    this.context = context
  }

  get jobId(): JobId {
    return this.context.jobId
  }

  get size(): number {
    return this.#entries.size
  }

  /** Whether the next heartbeat has something to say that should not wait for an answer. */
  get hasChanges(): boolean {
    return (
      this.#sent !== undefined ||
      this.#answered !== undefined ||
      this.#claimed.length > 0 ||
      this.#dropped.size > 0
    )
  }

  add(descriptor: ShuffleDescriptor, facts: DataSetFacts): void {
    this.#entries.set(partitionKeyText(descriptor.key), { descriptor, facts, isCommitted: false })
  }

  beginAllocating(key: PartitionKey): void {
    const name = partitionKeyText(key)
    this.#allocating.set(name, (this.#allocating.get(name) ?? 0) + 1)
  }

  endAllocating(key: PartitionKey): void {
    const name = partitionKeyText(key)
    const count = (this.#allocating.get(name) ?? 0) - 1
    if (count > 0) this.#allocating.set(name, count)
    else this.#allocating.delete(name)
  }

  release(key: PartitionKey): void {
    const name = partitionKeyText(key)
    this.#entries.delete(name)
    this.#releases.set(name, key)
    // The list that is under way still has it, and the call that releases it may overtake the list.
    if (this.#isReporting) this.#dropped.set(name, key)
  }

  /** Keys to be released, at most `countMax`; given back by {@link releaseFailed}. */
  takeReleases(countMax: number): PartitionKey[] {
    const keys: PartitionKey[] = []
    for (const [name, key] of this.#releases) {
      if (keys.length >= countMax) break
      this.#releases.delete(name)
      keys.push(key)
    }
    return keys
  }

  releaseFailed(keys: readonly PartitionKey[]): void {
    for (const key of keys) this.#releases.set(partitionKeyText(key), key)
  }

  get hasReleases(): boolean {
    return this.#releases.size > 0
  }

  /** The list as groups for a report; what was to be told as a change is told by it. */
  beginReport(): {
    readonly groups: ListGroup[]
    readonly dataSets: DataSetFacts[]
    readonly workers: WorkerAddress[]
  } {
    this.#isReporting = true
    this.#sent = undefined
    this.#sequence = 0
    this.#claimed = []
    this.#dropped.clear()
    this.#answered = undefined
    const dataSets = new Map<string, DataSetFacts>()
    const workers = new Map<string, WorkerAddress>()
    for (const { descriptor, facts } of this.#entries.values()) {
      dataSets.set(facts.dataSetId, facts)
      for (const { workerId, host, port } of descriptor.holders) {
        workers.set(workerId, { workerId, host, port })
      }
    }
    return {
      groups: listGroups([...this.#entries.values()]),
      dataSets: [...dataSets.values()],
      workers: [...workers.values()],
    }
  }

  /** The manager of that epoch has taken in the whole list of the last {@link beginReport}. */
  reportTaken(managerEpoch: number): void {
    this.#isReporting = false
    this.reportedTo = managerEpoch
  }

  /** Of the change that {@link beat} tells; 0: there is none. */
  get changeBytes(): number {
    this.#prepareChange()
    return this.#sent === undefined ? 0 : this.#sentBytes
  }

  /** What this job says in a heartbeat. */
  beat(): JobBeat {
    this.#prepareChange()
    return {
      ...this.#signOfLife(this.#sequence),
      ...this.#sent,
      ...(this.#answered === undefined ? {} : { answered: this.#answered }),
    }
  }

  /** What it says where its change has no room; an answer waits too, for what it claims. */
  quietBeat(): JobBeat {
    return this.#signOfLife(this.#sent === undefined ? this.#sequence : this.#sequence - 1)
  }

  /** The manager has taken the last {@link beat} in. */
  beatTaken(beat: JobBeat): void {
    if (beat.sequence === this.#sequence) this.#sent = undefined
    if (beat.answered === this.#answered) this.#answered = undefined
  }

  /** Answers the partitions that are newly known to be lost; they are no longer of the list. */
  take(commands: readonly JobCommand[]): LostPartition[] {
    const lost: LostPartition[] = []
    for (const command of commands) {
      switch (command.type) {
        case 'lost':
          this.#takeLost(command.groups, lost)
          break
        case 'asked':
          this.#takeQuestion(command)
          break
        case 'committed':
          this.#takeCommits(command)
          break
        default:
          this.#unknownCommands.add((command as { readonly type: string }).type)
      }
    }
    return lost
  }

  /** Types of commands that were skipped, once. */
  takeUnknownCommands(): string[] {
    const types = [...this.#unknownCommands]
    this.#unknownCommands.clear()
    return types
  }

  #signOfLife(sequence: number): JobBeat {
    const { jobId, jobEpoch = 0 } = this
    return { jobId, jobEpoch, sequence, newsSeen: this.#newsSeen }
  }

  #prepareChange(): void {
    if (this.#sent !== undefined) return
    this.#sent = this.#nextChange()
    // All ids are ASCII, and the numbers too.
    if (this.#sent !== undefined) this.#sentBytes = JSON.stringify(this.#sent).length
  }

  #nextChange(): ListChange | undefined {
    const claimed = this.#claimed
    const dropped: PartitionKey[] = []
    for (const [name, key] of this.#dropped) {
      if (claimed.length + dropped.length >= changesPerBeatMax) break
      this.#dropped.delete(name)
      dropped.push(key)
    }
    if (claimed.length === 0 && dropped.length === 0) return undefined
    this.#claimed = []
    this.#sequence++
    return {
      sequence: this.#sequence,
      claimed: encodeKeys(claimed),
      dropped: encodeKeys(dropped),
    }
  }

  #takeLost(groups: Extract<JobCommand, { type: 'lost' }>['groups'], lost: LostPartition[]): void {
    for (const group of groups) {
      decodeAttempts(group, [], (partitionIndex, attemptId) => {
        const dataSetId = group.dataSetId as DataSetId
        const key = { jobId: this.jobId, dataSetId, partitionIndex, attemptId }
        const name = partitionKeyText(key)
        this.#dropped.set(name, key)
        if (!this.#entries.delete(name)) return
        lost.push({ key, workerId: parseWorkerId(group.workerId), cause: group.cause })
      })
    }
  }

  #takeQuestion(command: Extract<JobCommand, { type: 'asked' }>): void {
    if (this.#sent !== undefined || this.#claimed.length > 0) return
    this.#answered = command.question
    for (const asked of decodeKeys(command.dataSets)) {
      const key = { jobId: this.jobId, ...asked }
      const name = partitionKeyText(key)
      if (this.#entries.has(name) || this.#allocating.has(name)) this.#claimed.push(key)
    }
  }

  #takeCommits(command: Extract<JobCommand, { type: 'committed' }>): void {
    this.#newsSeen = Math.max(this.#newsSeen, command.news)
    for (const key of decodeKeys(command.dataSets)) {
      const entry = this.#entries.get(partitionKeyText({ jobId: this.jobId, ...key }))
      if (entry !== undefined) entry.isCommitted = true
    }
  }
}

function listGroups(entries: readonly ListEntry[]): ListGroup[] {
  const groups = groupBy(entries, ({ descriptor, isCommitted }) => {
    const { key, allocation, holders } = descriptor
    const { managerEpoch, jobEpoch } = allocation
    return [key.dataSetId, holders[0]?.workerId, managerEpoch, jobEpoch, isCommitted].join(' ')
  })
  return groups.flatMap((group) =>
    inPages(group.items, groupRowsMax).map((items) => listGroup(items)),
  )
}

/** Of entries that agree in all that the head of a group says. */
function listGroup(entries: readonly ListEntry[]): ListGroup {
  const first = entries[0]
  if (first === undefined) throw new RangeError('a group has a row')
  const { key, holders, allocation } = first.descriptor
  return {
    dataSetId: key.dataSetId,
    ...encodeAttempts(entries.map((entry) => entry.descriptor.key)),
    workerId: holders[0]?.workerId ?? '',
    managerEpoch: allocation.managerEpoch,
    jobEpoch: allocation.jobEpoch,
    isCommitted: first.isCommitted,
    sequences: entries.map((entry) => entry.descriptor.allocation.sequence),
  }
}
