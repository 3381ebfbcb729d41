// Sluice as a shuffle service that a runtime loads by name: the one factory of the SPI.

import { silentLogger } from './common/log.ts'
import { parseClusterId } from './common/ids.ts'
import { realWorld } from './common/real-world.ts'
import { ManagerClient } from './manager/manager-client.ts'
import { ShuffleMaster as ManagedShuffleMaster } from './master/shuffle-master.ts'
import { ShuffleEnvironment } from './shuffle-environment.ts'
import type { ShuffleMaster, ShuffleMasterContext, ShuffleServiceFactory } from './spi.ts'

/** Flink's segment size, and what the workers' buffers are by default. */
const defaultBufferSizeBytes = 32_768
const defaultCodec = 'lz4'

export const shuffleServiceFactory: ShuffleServiceFactory = {
  createShuffleMaster: (context) => new OwningShuffleMaster(context),
  createShuffleEnvironment: (context) => new ShuffleEnvironment(context),
}

/** A ShuffleMaster with a manager client of its own, which it closes. */
class OwningShuffleMaster implements ShuffleMaster {
  readonly #client: ManagerClient
  readonly #master: ManagedShuffleMaster

  constructor(context: ShuffleMasterContext) {
    const world = context.world ?? realWorld()
    const logger = context.logger ?? silentLogger
    const { token } = context
    this.#client = new ManagerClient({
      world,
      logger,
      url: context.managerUrl,
      clusterId: parseClusterId(context.clusterId),
      ...(token === undefined ? {} : { token }),
    })
    this.#master = new ManagedShuffleMaster({
      world,
      logger,
      managerClient: this.#client,
      bufferSizeBytes: context.bufferSizeBytes ?? defaultBufferSizeBytes,
      codec: context.codec ?? defaultCodec,
    })
  }

  start(): Promise<void> {
    return this.#master.start()
  }

  async close(): Promise<void> {
    await this.#master.close()
    await this.#client.close()
  }

  registerJob(...args: Parameters<ManagedShuffleMaster['registerJob']>): Promise<void> {
    return this.#master.registerJob(...args)
  }

  unregisterJob(...args: Parameters<ManagedShuffleMaster['unregisterJob']>): Promise<void> {
    return this.#master.unregisterJob(...args)
  }

  detachJob(...args: Parameters<ManagedShuffleMaster['detachJob']>): Promise<void> {
    return this.#master.detachJob(...args)
  }

  registerPartitionWithProducer(
    ...args: Parameters<ManagedShuffleMaster['registerPartitionWithProducer']>
  ): ReturnType<ManagedShuffleMaster['registerPartitionWithProducer']> {
    return this.#master.registerPartitionWithProducer(...args)
  }

  releasePartitionExternally(
    ...args: Parameters<ManagedShuffleMaster['releasePartitionExternally']>
  ): void {
    this.#master.releasePartitionExternally(...args)
  }
}
