// First come, first served: what a worker does that has no carousel. Each channel asks for its next
// slice when it can take it, and the disk reads slices in the order of asking, one read each. It is
// here for comparison only, over the same views, files and blocks as the carousel.

import type { Clock } from '../../client/common/clock.ts'
import type { Logger } from '../../client/common/log.ts'
import type { MemoryLedger } from '../../shuffle-worker/memory/memory-ledger.ts'
import type { SweepScheduler } from '../../shuffle-worker/read/channel-disks.ts'
import { type DiskList, orderBehind } from '../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../shuffle-worker/read/list-memory.ts'
import type { PartitionCursor } from '../../shuffle-worker/read/partition-cursor.ts'
import { ReadMemory } from '../../shuffle-worker/read/read-memory.ts'
import { ReadPipeline } from '../../shuffle-worker/read/read-pipeline.ts'
import { planReads } from '../../shuffle-worker/read/read-plan.ts'
import type { ReadingOutput } from '../../shuffle-worker/read/reading-output.ts'
import { ReadingView } from '../../shuffle-worker/read/reading-view.ts'
import { SweepFiles } from '../../shuffle-worker/read/sweep-files.ts'
import type { DataStore } from '../../shuffle-worker/storage/data-store.ts'
import type { MapPartition } from '../../shuffle-worker/storage/storage-types.ts'

export interface ArrivalOrderSettings {
  readonly clock: Clock
  readonly logger: Logger
  readonly store: DataStore
  readonly ledger: MemoryLedger
}

const readsInFlightMax = 2

export class ArrivalOrder implements SweepScheduler {
  readonly #settings: ArrivalOrderSettings
  readonly #memory: ReadMemory
  readonly #listMemory: ListMemory
  readonly #files: SweepFiles
  readonly #pipeline: ReadPipeline
  readonly #queue: DiskList[] = []
  /** Where each channel goes on: the files in its own order, from a place of its own. */
  readonly #nextOrders = new Map<DiskList, number>()
  #openedCount = 0
  #isRunning = false

  constructor(settings: ArrivalOrderSettings) {
    const { ledger, clock } = settings
    this.#settings = settings
    this.#memory = new ReadMemory(ledger)
    this.#listMemory = new ListMemory(ledger)
    const onFault = (error: unknown) => {
      throw error
    }
    this.#files = new SweepFiles({ openFilesMax: 4096, onNotClosed: onFault })
    this.#pipeline = new ReadPipeline({
      memory: this.#memory,
      blockBytes: this.#memory.blockBytesFor({ diskCount: 1, readsInFlight: readsInFlightMax }),
      readsInFlightMax,
      nowMs: () => clock.nowMs(),
      afterTurn: (callback) => clock.setImmediate(callback),
      onCompleted: () => {
        this.#run()
      },
      onFault,
    })
  }

  open(
    output: ReadingOutput,
    fields: { readonly bufferSizeBytes: number; readonly initialCredit: number },
  ): ReadingView {
    const { clock, store } = this.#settings
    return new ReadingView({
      clock,
      memory: this.#memory,
      listMemory: this.#listMemory,
      output,
      lookup: (key) => store.lookup(key),
      schedulerOf: () => this,
      ...fields,
      aheadBytesMax: 1024 * 1024,
      flushAfterMs: 20,
      flushLateAfterMs: 100,
      entriesMax: 262_144,
      onFinished: () => undefined,
      onClosed: () => undefined,
    })
  }

  listed(list: DiskList, partition: MapPartition): void {
    this.#files.listed(list, partition)
  }

  unlisted(list: DiskList, partition: MapPartition): void {
    this.#files.unlisted(list, partition)
  }

  remove(list: DiskList, cursor: PartitionCursor): void {
    this.#files.remove(list, cursor)
  }

  wake(list: DiskList): void {
    if (!this.#queue.includes(list)) this.#queue.push(list)
    this.#run()
  }

  #run(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#serveAll()
      .catch((error: unknown) => {
        this.#settings.logger.error({ error }, 'reads in arrival order met an unexpected error')
      })
      .finally(() => {
        this.#isRunning = false
        if (this.#queue.length > 0) this.#run()
      })
  }

  async #serveAll(): Promise<void> {
    for (let list = this.#queue.shift(); list !== undefined; list = this.#queue.shift()) {
      await this.#serve(list)
    }
  }

  async #serve(list: DiskList): Promise<void> {
    if (!this.#nextOrders.has(list)) {
      this.#openedCount += 1
      this.#nextOrders.set(list, (this.#openedCount * 137) % Math.max(1, list.listed.count))
    }
    const partition = list.nextFrom(this.#nextOrders.get(list) ?? 0) ?? list.nextFrom(0)
    if (partition === undefined || list.channel.roomBytes(list) <= 0) return
    this.#nextOrders.set(list, orderBehind(partition.fileOrder))
    const file = this.#files.of(partition)
    const reader = await this.#files.open(file)
    list.begin(partition, (cursor) => file.wants.add(cursor))
    for (const cursor of file.wants) {
      if (cursor.list !== list) continue
      const region = cursor.plannedRegion
      await file.enterRegion(region)
      const slice = list.plan(cursor, this.#pipeline.readBytesMax)
      if (slice === undefined) continue
      const limits = { readBytesMax: this.#pipeline.readBytesMax, gapBytesMax: 0 }
      for (const plan of planReads([slice], limits)) {
        await this.#pipeline.read({ plan, reader })
      }
    }
    if (list.nextFrom(0) !== undefined) this.wake(list)
  }
}
