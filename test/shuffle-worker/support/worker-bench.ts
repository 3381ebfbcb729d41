// A worker in a virtual world with raw clients, and the steps that most tests of it share.

import { expect } from 'vitest'
import {
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type PartitionKey,
} from '../../../client/common/ids.ts'
import { silentLogger } from '../../../client/common/log.ts'
import { optionValues } from '../../../client/common/options.ts'
import { messages } from '../../../client/protocol/messages.ts'
import { workerOptions, type WorkerOptions } from '../../../shuffle-worker/options.ts'
import { ShuffleWorker } from '../../../shuffle-worker/worker.ts'
import { type VirtualProcess, VirtualWorld } from '../../support/virtual-world.ts'
import { encodeRegion, packBodies, RawClient, type RegionToWrite } from './raw-client.ts'

export const dataPort = 9710
const bufferSizeBytes = 4096

export class WorkerBench {
  readonly world: VirtualWorld
  readonly workerProcess: VirtualProcess
  readonly clientProcess: VirtualProcess
  readonly worker: ShuffleWorker

  private constructor(
    world: VirtualWorld,
    processes: { readonly worker: VirtualProcess; readonly client: VirtualProcess },
    worker: ShuffleWorker,
  ) {
    this.world = world
    this.workerProcess = processes.worker
    this.clientProcess = processes.client
    this.worker = worker
  }

  static async start(
    more: Partial<WorkerOptions> = {},
    settings: {
      readonly seed?: number
      readonly token?: string
      readonly kind?: 'ssd' | 'hdd'
      /** `/data` unless given. */
      readonly paths?: readonly string[]
    } = {},
  ): Promise<WorkerBench> {
    const world = new VirtualWorld({ seed: settings.seed ?? 1 })
    const worker = world.start('worker')
    const client = world.start('client')
    const options = optionValues(workerOptions, {
      dataDirectories: ['/data'],
      bindHost: '0.0.0.0',
      bufferSizeBytes,
      memoryBytes: 8 * 1024 * 1024,
      minReservedSpaceBytes: 0,
      smallPartitionBytes: 0,
      ...more,
    })
    const started = await world.clock.drive(
      ShuffleWorker.start({
        world: worker,
        options,
        directories: (settings.paths ?? ['/data']).map((path) => ({
          path,
          kind: settings.kind ?? 'ssd',
        })),
        token: settings.token,
        logger: silentLogger,
      }),
    )
    return new WorkerBench(world, { worker, client }, started)
  }

  /** Runs the world until `condition` holds. */
  until(condition: () => boolean): Promise<void> {
    return this.world.clock.runUntil(condition, { withinMs: 600_000 })
  }

  async connect(
    options: { token?: string; clusterId?: string; idlePingsMax?: number } = {},
  ): Promise<RawClient> {
    const client = await this.world.clock.drive(
      RawClient.connect(this.clientProcess, { host: 'worker', port: dataPort, ...options }),
    )
    await this.until(() => client.session !== undefined || client.isClosed)
    return client
  }

  key(partitionIndex: number): PartitionKey {
    return {
      jobId: parseJobId('job'),
      dataSetId: parseDataSetId('data'),
      partitionIndex,
      attemptId: parseAttemptId('attempt-0'),
    }
  }

  payload(length: number): Buffer {
    return this.world.random.bytes(length)
  }

  /** Starts a region and sends all of it within credit, then finishes it. */
  async writeRegion(
    client: RawClient,
    channelId: number,
    region: { readonly key: PartitionKey; readonly index: number; readonly content: RegionToWrite },
  ): Promise<number> {
    const { key, index: regionIndex, content } = region
    const entries = encodeRegion(key, regionIndex, content)
    const byteCount = entries.reduce((sum, entry) => sum + entry.length, 0)
    client.connection.send(messages.RegionStart, channelId, {
      regionIndex,
      isBroadcast: content.isBroadcast,
      boundBytes: byteCount,
    })
    let sent = 0
    for (const body of packBodies(entries, bufferSizeBytes)) {
      await this.until(
        () =>
          client.creditOf(channelId, regionIndex) > sent ||
          client.errorOf(channelId) !== undefined ||
          client.isClosed,
      )
      if (client.isClosed || client.errorOf(channelId) !== undefined) return byteCount
      client.connection.send(messages.WriteData, channelId, { regionIndex }, [body])
      sent += 1
    }
    client.connection.send(messages.RegionFinish, channelId, {
      regionIndex,
      entryCount: entries.length,
      byteCount,
    })
    return byteCount
  }

  /** Writes and commits a whole partition. */
  async write(
    client: RawClient,
    key: PartitionKey,
    regions: readonly RegionToWrite[],
    subpartitionCount = 4,
  ): Promise<number> {
    const channelId = client.openWrite(key, { subpartitionCount })
    let byteCount = 0
    for (const [index, content] of regions.entries()) {
      byteCount += await this.writeRegion(client, channelId, { key, index, content })
    }
    client.writeFinish(
      channelId,
      { regionCount: regions.length, byteCount },
      uncompressedBytes(regions, subpartitionCount),
    )
    await this.until(
      () =>
        client.first(channelId, 'WriteCommitted') !== undefined ||
        client.errorOf(channelId) !== undefined,
    )
    return channelId
  }

  /** Grants one credit for each frame until the channel is finished. */
  async readToEnd(client: RawClient, channelId: number): Promise<void> {
    let granted = 2
    await this.until(() => {
      const used = client.frames.get(channelId) ?? 0
      const backlog = client.all(channelId, 'Backlog').at(-1)?.bufferCount ?? 0
      if (backlog > 0 && granted - used < 2) {
        client.addCredit(channelId, 2)
        granted += 2
      }
      return client.first(channelId, 'ReadFinish') !== undefined || client.isClosed
    })
  }

  /** Nothing of any channel is left in the worker's memory, but the indexes kept for the next. */
  async expectNothingHeld(): Promise<void> {
    const { ledger, store } = this.worker
    await this.world.clock.advance(1000)
    const kept = { write: 0, read: 0, index: store.keptIndexBytes, control: 0 }
    for (const purpose of ['write', 'read', 'index', 'control'] as const) {
      const bytes = ledger.usedBytes(purpose)
      expect({ purpose, bytes }).toEqual({ purpose, bytes: kept[purpose] })
    }
  }
}

export function uncompressedBytes(
  regions: readonly RegionToWrite[],
  subpartitionCount: number,
): number[] {
  return Array.from({ length: subpartitionCount }, (_, subpartition) =>
    regions.reduce((sum, region) => {
      const run = region.isBroadcast ? region.runs[0] : region.runs[subpartition]
      return sum + (run ?? []).reduce((bytes, payload) => bytes + payload.length, 0)
    }, 0),
  )
}
