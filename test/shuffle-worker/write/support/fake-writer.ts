// An open write that keeps what it gets; each step takes a virtual millisecond or what a test says.

import type { PartitionKey } from '../../../../client/common/ids.ts'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../../client/common/ids.ts'
import type {
  CommittedTotals,
  DiskKind,
  FilledBuffer,
  PartitionWriter,
  RegionStart,
  RegionTotals,
  StorageDirectoryView,
  WriteTotals,
} from '../../../../shuffle-worker/storage/storage-types.ts'
import { sleep } from '../../../../client/common/clock.ts'
import type { VirtualClock } from '../../../support/virtual-clock.ts'

export const key: PartitionKey = {
  jobId: parseJobId('job'),
  dataSetId: parseDataSetId('data'),
  partitionIndex: 0,
  attemptId: parseAttemptId('attempt'),
}

export class FakeWriter implements PartitionWriter {
  readonly key = key
  readonly allocation = { managerEpoch: 1, jobEpoch: 1, sequence: 1 }
  readonly failure = undefined
  readonly directory: StorageDirectoryView
  readonly calls: string[] = []
  readonly batches: number[] = []
  readonly failures = new Map<string, Error>()
  appendMs = 1
  finishMs = 1
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock, directory = fakeDirectory('ssd')) {
    this.#clock = clock
    this.directory = directory
  }

  async startRegion(start: RegionStart): Promise<void> {
    await this.#step(`start ${String(start.regionIndex)}`, 1)
  }

  async append(buffers: readonly FilledBuffer[]): Promise<void> {
    this.batches.push(buffers.length)
    try {
      await this.#step(`append ${String(buffers.length)}`, this.appendMs)
    } finally {
      for (const { buffer } of buffers) buffer.recycle()
    }
  }

  async finishRegion(totals: RegionTotals): Promise<void> {
    await this.#step(`finish region ${String(totals.entryCount)}`, 1)
  }

  async finish(totals: WriteTotals): Promise<CommittedTotals> {
    await this.#step('finish', this.finishMs)
    return {
      regionCount: totals.regionCount,
      entryCount: 0,
      byteCount: totals.byteCount,
      recordCount: totals.recordCount,
      storedBytes: totals.byteCount,
      durability: 'none',
    }
  }

  abort(): Promise<void> {
    this.calls.push('abort')
    return Promise.resolve()
  }

  async #step(call: string, delayMs: number): Promise<void> {
    this.calls.push(call)
    await sleep(this.#clock, delayMs)
    const failure = this.failures.get(call.split(' ')[0] ?? '')
    if (failure !== undefined) throw failure
  }
}

export function fakeDirectory(kind: DiskKind): StorageDirectoryView {
  return {
    index: 0,
    path: '/data',
    kind,
    health: 'healthy',
    limits: { reads: 8, writes: 4 },
    status: () => {
      throw new Error('not needed')
    },
  }
}
