import { describe, expect, test } from 'vitest'
import { parseAttemptId, parseDataSetId } from '../../../client/common/ids.ts'
import { EventBatch, RecordBatch, recordLength } from '../../../client/read/record-batch.ts'
import { jobId } from '../support/client-bench.ts'

const origin = {
  inputIndex: 0,
  key: {
    jobId,
    dataSetId: parseDataSetId('s'),
    partitionIndex: 0,
    attemptId: parseAttemptId('a'),
  },
  subpartition: 1,
  regionIndex: 2,
}

function batchOf(head: Uint8Array | undefined) {
  let released = 0
  const memory = Buffer.from([9, 9, 0, 0, 0, 2, 65, 66, 0, 0, 0, 0, 0, 0, 0, 1, 67, 0, 0])
  const batch = new RecordBatch({
    origin,
    head,
    memory,
    start: 2,
    recordCount: head === undefined ? 3 : 4,
    byteCount: 3 + (head?.length ?? 0),
    release: () => {
      released += 1
    },
  })
  return { batch, releasedCount: () => released }
}

describe('a record batch', () => {
  test.each([undefined, Buffer.from('head')])('gives each record both ways (head: %s)', (head) => {
    const { batch } = batchOf(head)
    const expected = [...(head === undefined ? [] : ['head']), 'AB', '', 'C']
    expect([...batch].map((record) => Buffer.from(record).toString())).toEqual(expected)
    const visited: string[] = []
    batch.forEach((bytes, start, end) => {
      visited.push(Buffer.from(bytes.subarray(start, end)).toString())
    })
    expect(visited).toEqual(expected)
  })

  test('is recycled exactly once and not read after it', () => {
    const { batch, releasedCount } = batchOf(undefined)
    batch.recycle()
    expect(releasedCount()).toBe(1)
    expect(() => {
      batch.recycle()
    }).toThrow(/exactly once/)
    expect(() => [...batch]).toThrow(/not read/)
    expect(() => {
      batch.forEach(() => undefined)
    }).toThrow(/not read/)
  })
})

test('an event batch may be recycled like any other', () => {
  const batch = new EventBatch({ origin, code: 2, bytes: Buffer.of(1) })
  batch.recycle()
  expect(batch.bytes).toEqual(Buffer.of(1))
})

test('lengths are unsigned', () => {
  expect(recordLength(Buffer.of(0xff, 0xff, 0xff, 0xfe), 0)).toBe(0xffff_fffe)
  expect(recordLength(Buffer.of(0, 0, 1, 2, 3), 1)).toBe(0x0001_0203)
})
