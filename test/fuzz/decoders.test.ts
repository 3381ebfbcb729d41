import fc from 'fast-check'
import { test } from 'vitest'
import { isShuffleError } from '../../client/common/errors.ts'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../client/common/ids.ts'
import { decodeShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { ByteCountAssembler } from '../../client/protocol/byte-counts.ts'
import { EntryReader } from '../../client/protocol/entry.ts'
import { decodePartitionList } from '../../client/protocol/partition-list.ts'
import { SegmentReader } from '../../client/protocol/read-segment.ts'
import { decodeJournalRecord } from '../../shuffle-worker/storage/journal-records.ts'
import {
  decodeLogRecordHeader,
  decodeSegmentHeader,
} from '../../shuffle-worker/storage/log-record.ts'
import {
  decodeFooter,
  decodeIndexRow,
  decodeTable,
} from '../../shuffle-worker/storage/partition-format.ts'
import { fuzzBudget } from './budget.ts'

const key = {
  jobId: parseJobId('j'),
  dataSetId: parseDataSetId('d'),
  partitionIndex: 0,
  attemptId: parseAttemptId('a'),
}

/** Nothing but an error of ours, whatever the bytes say. */
function onlyOurErrors(decode: () => unknown): void {
  try {
    decode()
  } catch (error) {
    if (!isShuffleError(error)) throw error
  }
}

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  // Small numbers are what lengths and counts are made of.
  fc
    .array(fc.oneof(fc.constantFrom(0, 1, 2, 4, 127, 128, 255), fc.nat(255)), { maxLength: 200 })
    .map((list) => Uint8Array.from(list)),
)

test.each<[string, (bytes: Uint8Array, number: number) => unknown]>([
  ['a list of partitions', (input, number) => decodePartitionList(input, number % 1000)],
  ['a journal record', (input) => decodeJournalRecord(input)],
  ['the header of a segment of the log', (input) => decodeSegmentHeader(input)],
  ['the header of a record of the log', (input) => decodeLogRecordHeader(input)],
  ['the footer of a partition', (input, number) => decodeFooter(input, number)],
  [
    'the table of a partition',
    (input, number) =>
      decodeTable(input, {
        ...decodeFooter(input.subarray(-32), input.length),
        ...{ tableLength: number % 300 },
      }),
  ],
  [
    'an index row',
    (input, number) =>
      decodeIndexRow(input, {
        key,
        regionIndex: number % 3,
        region: {
          position: 0,
          byteLength: number,
          entryCount: 1,
          rowLength: input.length,
        } as never,
        subpartitionCount: 8,
      }),
  ],
  [
    'a page of byte counts',
    (input, number) => {
      const assembler = new ByteCountAssembler(1 + (number % 64))
      assembler.addPage({ firstSubpartition: number % 3, body: input } as never)
      return assembler
    },
  ],
  [
    'the segments of a body',
    (input) => {
      const segments = new SegmentReader().reset(input, input.length)
      while (segments.next()) {
        const { entriesStart, entriesEnd } = segments
        const entries = new EntryReader('DATA_CORRUPT').reset(input, entriesStart, entriesEnd)
        while (entries.next()) entries.payload()
      }
    },
  ],
  ['a descriptor', (input) => decodeShuffleDescriptor(Buffer.from(input).toString('latin1'))],
])('%s of any bytes is decoded or refused by name', (_what, decode) => {
  fc.assert(
    fc.property(bytes, fc.nat(2 ** 31 - 1), (input, number) => {
      onlyOurErrors(() => decode(input, number))
    }),
    fuzzBudget(0.5),
  )
})

test('a descriptor of any JSON is read or refused by name', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      onlyOurErrors(() => decodeShuffleDescriptor(text))
    }),
    fuzzBudget(0.5),
  )
})
