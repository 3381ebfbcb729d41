// The data path of a worker on a modelled disk: the real store, ledger, write and read services, in
// virtual time. What is not there is the network: producers and consumers call the views.

import { Registry } from 'prom-client'
import { parseClusterId } from '../../client/common/ids.ts'
import { silentLogger } from '../../client/common/log.ts'
import { WaiterRegister } from '../../client/common/waiters.ts'
import { MemoryLedger } from '../../shuffle-worker/memory/memory-ledger.ts'
import { ReadService } from '../../shuffle-worker/read/read-service.ts'
import type { ReadingView } from '../../shuffle-worker/read/reading-view.ts'
import { DataStore } from '../../shuffle-worker/storage/data-store.ts'
import { WriteService } from '../../shuffle-worker/write/write-service.ts'
import {
  DiskModel,
  type DiskModelCounts,
  type DiskModelSettings,
  solidStateDisk,
  spinningDisk,
} from '../support/disk-model.ts'
import { type VirtualProcess, VirtualWorld } from '../support/virtual-world.ts'
import { ArrivalOrder } from './arrival-order.ts'
import { bufferSizeBytes, type DataShape, regionBodies } from './data-shape.ts'
import { Mailbox } from './mailbox.ts'
import { ModelConsumer } from './model-consumer.ts'
import { ModelProducer } from './model-producer.ts'

export interface ModelWorkerOptions {
  readonly kind: 'hdd' | 'ssd'
  /** Of the memory; the pool is eight thirds of it. */
  readonly readPartBytes: number
  /** First come, first served, in place of the carousel: for comparison. */
  readonly isArrivalOrder?: boolean
}

export interface ConsumerOptions {
  readonly creditWindow?: number
  readonly bytesPerSecond?: number | undefined
}

const initialCredit = 2
/** A gate's 8 MiB shared by the channels to sixteen workers. */
const creditWindowDefault = 16

const settingsOf: Readonly<Record<'hdd' | 'ssd', DiskModelSettings>> = {
  hdd: spinningDisk,
  ssd: solidStateDisk,
}

export class ModelWorker {
  readonly world: VirtualWorld
  readonly ledger: MemoryLedger
  readonly writes: WriteService
  readonly reads: ReadService
  readonly #model: DiskModel
  readonly #process: VirtualProcess
  readonly #store: DataStore
  readonly #mailbox: Mailbox
  readonly #arrivalOrder: ArrivalOrder | undefined
  readonly #options: ModelWorkerOptions
  #writtenBytes = 0

  private constructor(parts: {
    readonly world: VirtualWorld
    readonly process: VirtualProcess
    readonly model: DiskModel
    readonly ledger: MemoryLedger
    readonly store: DataStore
    readonly options: ModelWorkerOptions
  }) {
    const { world, process, ledger, store } = parts
    this.world = world
    this.#process = process
    this.ledger = ledger
    this.#model = parts.model
    this.#store = store
    this.#options = parts.options
    this.#mailbox = new Mailbox(process.clock)
    const common = { clock: process.clock, logger: silentLogger, store, ledger }
    this.writes = new WriteService({
      ...common,
      waiters: new WaiterRegister({ clock: process.clock }),
      options: {
        bufferSizeBytes,
        openWritesMax: 8192,
        openTimeoutMs: 30_000,
        // Virtual producers all start at once; on a disk with heads the last waits for all others.
        regionTimeoutMs: 600_000,
        commitTimeoutMs: 120_000,
      },
      onTimes: () => undefined,
    })
    this.reads = new ReadService({
      ...common,
      options: { entriesPerChannelMax: 262_144, readAheadBytes: 1024 * 1024, openFilesMax: 4096 },
      turnsOf: (directory) => this.writes.turnsOf(directory),
      onDiskRead: () => undefined,
      onTimes: () => undefined,
    })
    if (parts.options.isArrivalOrder === true) this.#arrivalOrder = new ArrivalOrder(common)
  }

  static async start(options: ModelWorkerOptions): Promise<ModelWorker> {
    const model = new DiskModel(settingsOf[options.kind])
    const world = new VirtualWorld({ diskModel: { model, lengthsOnly: /\/partitions\// } })
    return ModelWorker.#startOn(world, model, options)
  }

  /** Ends as by kill -9; the worker that starts in its place knows what the disk says. */
  restart(): Promise<ModelWorker> {
    this.close()
    return ModelWorker.#startOn(this.world, this.#model, this.#options)
  }

  static async #startOn(
    world: VirtualWorld,
    model: DiskModel,
    options: ModelWorkerOptions,
  ): Promise<ModelWorker> {
    const process = world.start('worker')
    const ledger = new MemoryLedger({
      clock: process.clock,
      totalBytes: Math.ceil((options.readPartBytes * 64) / 24),
      bufferSizeBytes,
    })
    const store = await world.drive(
      DataStore.open({
        world: process,
        clusterId: parseClusterId('model'),
        directories: [{ path: '/data', kind: options.kind }],
        ledger,
        options: { minReservedSpaceBytes: 0 },
        registry: new Registry(),
        logger: silentLogger,
      }),
    )
    return new ModelWorker({ world, process, model, ledger, store, options })
  }

  get nowMs(): number {
    return this.#process.clock.nowMs()
  }

  get counts(): DiskModelCounts {
    return this.#model.counts
  }

  /** Bytes of entries that producers have sent. */
  get writtenBytes(): number {
    return this.#writtenBytes
  }

  /** All producers at once; `committed` counts up. */
  startProducers(shape: DataShape): { committed: number } {
    const progress = { committed: 0 }
    const bodies = regionBodies(shape)
    for (let partitionIndex = 0; partitionIndex < shape.producers; partitionIndex++) {
      new ModelProducer({
        clock: this.#process.clock,
        writes: this.writes,
        shape,
        partitionIndex,
        bodies,
        onWritten: (bytes) => {
          this.#writtenBytes += bytes
        },
        onCommitted: () => {
          progress.committed += 1
        },
      }).start()
    }
    return progress
  }

  async write(shape: DataShape): Promise<void> {
    const progress = this.startProducers(shape)
    await this.until(() => progress.committed === shape.producers)
  }

  /** One consumer; it reads from now on. */
  startConsumer(
    shape: DataShape,
    subpartition: number,
    options: ConsumerOptions & { readonly onFinished: () => void },
  ): ModelConsumer {
    const consumer = new ModelConsumer({
      clock: this.#process.clock,
      mailbox: this.#mailbox,
      shape,
      subpartition,
      initialCredit,
      creditWindow: options.creditWindow ?? creditWindowDefault,
      bytesPerSecond: options.bytesPerSecond,
      onFinished: options.onFinished,
    })
    consumer.start((output) => this.#openRead(output))
    return consumer
  }

  async until(condition: () => boolean, withinMs = 100 * 3_600_000): Promise<void> {
    await this.world.clock.runUntil(condition, { withinMs })
  }

  /** So that nothing of it is left in this process. */
  close(): void {
    this.#process.kill()
  }

  #openRead(output: ModelConsumer): ReadingView {
    if (this.#arrivalOrder !== undefined) {
      return this.#arrivalOrder.open(output, { bufferSizeBytes, initialCredit })
    }
    return this.reads.open({ bufferSizeBytes, initialCredit }, output, () => undefined)
  }

  /** Where its partitions are, for a test that looks inside. */
  get store(): DataStore {
    return this.#store
  }
}
