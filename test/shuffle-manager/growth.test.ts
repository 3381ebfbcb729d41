// With M producers and R consumers, nothing may grow with M times R. Counted, not timed: each size is
// taken at (M, R), (2M, R), (M, 2R) and (2M, 2R); where there is no product term, the first and the
// last together are the two in the middle together.

import { expect, test } from 'vitest'
import { parseAttemptId, parseDataSetId, type PartitionKey } from '../../client/common/ids.ts'
import { encodeShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { byteCountPages } from '../../client/protocol/byte-counts.ts'
import { encodePartitionList, fromBeginning } from '../../client/protocol/partition-list.ts'
import { ClusterState, jobId, key, reported } from '../support/cluster-state.ts'
import { encodeKeys } from '../../client/manager/key-columns.ts'

interface Sizes {
  readonly tableRows: number
  readonly allocateBytes: number
  readonly descriptionBytes: number
  readonly workerDeltaBytes: number
  readonly descriptorBytes: number
  readonly readListBytes: number
  readonly readListPages: number
  readonly finishBytes: number
}

function fullKey(index: number): PartitionKey {
  const { dataSetId, attemptId } = key(index, `attempt-${String(index).padStart(5, '0')}`)
  return {
    jobId,
    dataSetId: parseDataSetId(dataSetId),
    partitionIndex: index,
    attemptId: parseAttemptId(attemptId),
  }
}

async function sizesOf(producers: number, consumers: number): Promise<Sizes> {
  const state = new ClusterState()
  for (const name of ['w1', 'w2', 'w3']) state.register(name)
  await state.clock.advance(6000)
  state.registerJob()
  const keys = Array.from({ length: producers }, (_, index) => fullKey(index))
  state.allocate(keys, { totalPartitions: producers, subpartitionCount: consumers })
  const groups = [reported(keys, 'committed')]
  const table = state.cluster.jobs.get(jobId)?.tables.get(parseDataSetId('d'))
  const pages = encodePartitionList(
    keys.map((partition, index) => ({
      index,
      key: partition,
      firstSubpartition: consumers - 1,
      lastSubpartition: consumers - 1,
      start: fromBeginning,
      isPending: false,
    })),
  )
  return {
    tableRows: table?.rowCount ?? 0,
    allocateBytes: JSON.stringify(encodeKeys(keys)).length,
    descriptionBytes: state.cluster.descriptions.describe(table, undefined).length,
    workerDeltaBytes: JSON.stringify(groups).length,
    descriptorBytes: encodeShuffleDescriptor({
      key: fullKey(0),
      holders: [
        {
          workerId: state.cluster.workers.at(0).workerId,
          host: 'w1.host',
          port: 9710,
          firstSubpartition: 0,
          lastSubpartition: consumers - 1,
        },
      ],
      allocation: { managerEpoch: 1, jobEpoch: 1, sequence: 1 },
      bufferSizeBytes: 32_768,
      codec: 'lz4',
      subpartitionCount: consumers,
      isBroadcast: false,
      totalPartitions: producers,
    }).length,
    readListBytes: pages.reduce((sum, page) => sum + page.body.length, 0),
    readListPages: pages.length,
    finishBytes: byteCountPages(new Float64Array(consumers)).reduce(
      (sum, page) => sum + page.body.length,
      0,
    ),
  }
}

test('no message and no table grows with producers times consumers', async () => {
  const base = await sizesOf(2000, 2000)
  expect(base.tableRows).toBe(2000)
  const twiceProducers = await sizesOf(4000, 2000)
  const twiceConsumers = await sizesOf(2000, 4000)
  const twiceBoth = await sizesOf(4000, 4000)
  for (const name of Object.keys(base) as (keyof Sizes)[]) {
    const product = twiceBoth[name] - twiceProducers[name] - twiceConsumers[name] + base[name]
    // A few digits more; a product term would be millions.
    expect(Math.abs(product), name).toBeLessThanOrEqual(16)
    // And none is more than linear in one of them.
    expect(twiceProducers[name], name).toBeLessThanOrEqual(2.3 * base[name])
    expect(twiceConsumers[name], name).toBeLessThanOrEqual(2.3 * base[name])
  }
})
