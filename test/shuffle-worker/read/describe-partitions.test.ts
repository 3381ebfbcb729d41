import { describe, expect, it } from 'vitest'
import { errorTable, ShuffleError } from '../../../client/common/errors.ts'
import type { MessageFields } from '../../../client/protocol/messages.ts'
import { describePartitions } from '../../../shuffle-worker/read/describe-partitions.ts'
import type { LookupResult } from '../../../shuffle-worker/storage/storage-types.ts'
import { entryOf, ReadBench } from './support/read-bench.ts'

async function ask(
  results: readonly LookupResult[],
  options: { readonly withSubpartitions: boolean; readonly ready?: () => Promise<boolean> },
) {
  const sent: { readonly fields: MessageFields<'Described'>; readonly bytes: number }[] = []
  await describePartitions({
    entries: results.map((_, index) => entryOf(index, index, [0, 0])),
    withSubpartitions: options.withSubpartitions,
    lookup: (key) => results[key.partitionIndex] ?? { state: 'unknown' },
    send: (fields, body) => sent.push({ fields, bytes: body.length }),
    ready: options.ready ?? (() => Promise.resolve(true)),
  })
  return sent
}

describe('describePartitions', () => {
  it('answers every key, the last frame marked', async () => {
    const partition = new ReadBench().add(0, 3, [])
    const sent = await ask(
      [
        { state: 'committed', partition },
        { state: 'writing' },
        { state: 'released' },
        { state: 'lost', code: 'DISK_FAILED' },
        { state: 'unknown' },
      ],
      { withSubpartitions: false },
    )
    const codes = (
      ['PARTITION_NOT_READY', 'PARTITION_RELEASED', 'DISK_FAILED', 'PARTITION_NOT_FOUND'] as const
    ).map((code) => errorTable[code].wireCode)
    expect(sent.map(({ fields }) => fields.code)).toEqual([0, ...codes])
    expect(sent.map(({ fields }) => fields.isLast)).toEqual([false, false, false, false, true])
  })

  it('adds the bytes of each subpartition where they are wanted', async () => {
    const partition = new ReadBench().add(0, 3, [])
    const sent = await ask([{ state: 'committed', partition }], { withSubpartitions: true })
    expect(sent).toMatchObject([{ fields: { code: 0, isLast: true }, bytes: 24 }])
  })

  it('says which error kept it from reading them', async () => {
    const partition = {
      ...new ReadBench().add(0, 3, []),
      uncompressedBytes: () => Promise.reject(new ShuffleError('DATA_CORRUPT', 'damaged')),
    }
    const sent = await ask([{ state: 'committed', partition }], { withSubpartitions: true })
    expect(sent[0]?.fields.code).toBe(errorTable.DATA_CORRUPT.wireCode)
  })

  it('stops when the channel is over', async () => {
    const sent = await ask([{ state: 'unknown' }, { state: 'unknown' }], {
      withSubpartitions: false,
      ready: () => Promise.resolve(false),
    })
    expect(sent).toEqual([])
  })
})
