// The body of AddPartitions and Describe: a list of partitions to read, each coded as its difference
// from the one before, so that 10,000 partitions of a data set take about ten bytes each. Each page
// begins anew and is decoded alone. Big-endian.
//
//   entry:  | bits u8 | index? | job id? | data set id? | partition index? | attempt id? | range? | start? |
//
//   bit 0  job id differs        | shared u8 | length u8 | length bytes |  shared: how many first bytes
//   bit 1  data set id differs   | shared u8 | length u8 | length bytes |  are those of the entry before
//   bit 2  attempt id differs    | shared u8 | length u8 | length bytes |
//   bit 3  partition index is not that of the entry before + 1     | u32 |
//   bit 4  range differs         | first u32 | last u32 |
//   bit 5  start is not 0, 0, 0  | region u32 | subpartition u32 | byte offset u64 |
//   bit 6  pending
//   bit 7  index is not that of the entry before + 1               | u32 |
//
// Before the first entry of a page: ids empty, index and partition index -1, range 0 to 0.

import { assert } from '../common/assert.ts'
import { isShuffleError, ShuffleError } from '../common/errors.ts'
import {
  type AttemptId,
  type DataSetId,
  idLengthMax,
  type JobId,
  parseAttemptId,
  parseDataSetId,
  parseJobId,
  type PartitionKey,
} from '../common/ids.ts'
import { bufferView } from './buffer-view.ts'
import { uint64 } from './field-types.ts'
import { HeaderReader } from './header-reader.ts'
import { partitionListEntriesMax } from './limits.ts'

/** Where in a partition to begin: after what was received before. Zeros: at its beginning. */
export interface ReadStart {
  readonly regionIndex: number
  /** The subpartition served. */
  readonly subpartition: number
  /** Bytes of entries of that run received, headers included. */
  readonly byteOffset: number
}

export interface PartitionListEntry {
  /** Index in the list of the channel, ascending over all its frames, from 0. */
  readonly index: number
  readonly key: PartitionKey
  readonly firstSubpartition: number
  /** Inclusive. */
  readonly lastSubpartition: number
  readonly start: ReadStart
  /** The consumer was told that it may not be committed yet. */
  readonly isPending: boolean
}

export const fromBeginning: ReadStart = { regionIndex: 0, subpartition: 0, byteOffset: 0 }

/** One frame's worth of a list. */
export interface PartitionListPage {
  readonly partitionCount: number
  readonly body: Uint8Array
}

const bit = {
  jobId: 1,
  dataSetId: 2,
  attemptId: 4,
  partitionIndex: 8,
  range: 16,
  start: 32,
  pending: 64,
  index: 128,
} as const

/** Pages stay well below the limit of a body: decoding one must not hold the event loop for long. */
const pageBytesMax = 131_072
const pageEntriesMax = 4_096
const entryBytesMax = 1 + 4 + 3 * (2 + idLengthMax) + 4 + 8 + 16

/** What the next entry is coded against. */
interface Previous {
  index: number
  jobId: JobId | ''
  dataSetId: DataSetId | ''
  partitionIndex: number
  attemptId: AttemptId | ''
  firstSubpartition: number
  lastSubpartition: number
}

function nothingBefore(): Previous {
  return {
    index: -1,
    jobId: '',
    dataSetId: '',
    partitionIndex: -1,
    attemptId: '',
    firstSubpartition: 0,
    lastSubpartition: 0,
  }
}

/** Codes the entries into as many pages as they take. */
export function encodePartitionList(entries: Iterable<PartitionListEntry>): PartitionListPage[] {
  const pages: PartitionListPage[] = []
  const page = Buffer.allocUnsafe(pageBytesMax)
  let end = 0
  let partitionCount = 0
  let previous = nothingBefore()
  const closePage = () => {
    if (partitionCount === 0) return
    pages.push({ partitionCount, body: new Uint8Array(page.subarray(0, end)) })
    end = 0
    partitionCount = 0
    previous = nothingBefore()
  }
  for (const entry of entries) {
    if (end + entryBytesMax > pageBytesMax || partitionCount === pageEntriesMax) closePage()
    assert(entry.firstSubpartition <= entry.lastSubpartition, 'a range has a first and a last')
    end = writeEntry(page, end, entry, previous)
    partitionCount += 1
  }
  closePage()
  return pages
}

function writeEntry(
  page: Buffer,
  offset: number,
  entry: PartitionListEntry,
  previous: Previous,
): number {
  const { key, start } = entry
  const bits = bitsOf(entry, previous)
  let end = page.writeUInt8(bits, offset)
  if (bits & bit.index) end = page.writeUInt32BE(entry.index, end)
  if (bits & bit.jobId) end = writeId(page, end, { id: key.jobId, before: previous.jobId })
  if (bits & bit.dataSetId) {
    end = writeId(page, end, { id: key.dataSetId, before: previous.dataSetId })
  }
  if (bits & bit.partitionIndex) end = page.writeUInt32BE(key.partitionIndex, end)
  if (bits & bit.attemptId) {
    end = writeId(page, end, { id: key.attemptId, before: previous.attemptId })
  }
  if (bits & bit.range) {
    end = page.writeUInt32BE(entry.firstSubpartition, end)
    end = page.writeUInt32BE(entry.lastSubpartition, end)
  }
  if (bits & bit.start) {
    end = page.writeUInt32BE(start.regionIndex, end)
    end = page.writeUInt32BE(start.subpartition, end)
    end = uint64.write(start.byteOffset, page, end)
  }
  remember(previous, entry)
  return end
}

function bitsOf(entry: PartitionListEntry, previous: Previous): number {
  const { key, start } = entry
  const isRangeSame =
    entry.firstSubpartition === previous.firstSubpartition &&
    entry.lastSubpartition === previous.lastSubpartition
  const isFromBeginning =
    start.regionIndex === 0 && start.subpartition === 0 && start.byteOffset === 0
  return (
    (key.jobId === previous.jobId ? 0 : bit.jobId) |
    (key.dataSetId === previous.dataSetId ? 0 : bit.dataSetId) |
    (key.attemptId === previous.attemptId ? 0 : bit.attemptId) |
    (key.partitionIndex === previous.partitionIndex + 1 ? 0 : bit.partitionIndex) |
    (isRangeSame ? 0 : bit.range) |
    (isFromBeginning ? 0 : bit.start) |
    (entry.isPending ? bit.pending : 0) |
    (entry.index === previous.index + 1 ? 0 : bit.index)
  )
}

function writeId(page: Buffer, offset: number, ids: { id: string; before: string }): number {
  const { id, before } = ids
  let shared = 0
  while (shared < id.length && shared < before.length && id[shared] === before[shared]) shared += 1
  const end = page.writeUInt8(shared, offset)
  const length = page.write(id.slice(shared), end + 1, 'latin1')
  page.writeUInt8(length, end)
  return end + 1 + length
}

function remember(
  previous: Previous,
  entry: Omit<PartitionListEntry, 'start' | 'isPending'>,
): void {
  previous.index = entry.index
  previous.jobId = entry.key.jobId
  previous.dataSetId = entry.key.dataSetId
  previous.partitionIndex = entry.key.partitionIndex
  previous.attemptId = entry.key.attemptId
  previous.firstSubpartition = entry.firstSubpartition
  previous.lastSubpartition = entry.lastSubpartition
}

/** The inverse, for one page. Throws PROTOCOL for anything malformed. */
export function decodePartitionList(
  body: Uint8Array,
  partitionCount: number,
): PartitionListEntry[] {
  if (partitionCount === 0 || partitionCount > partitionListEntriesMax) {
    fail(`${String(partitionCount)} entries; 1 to ${String(partitionListEntriesMax)} are allowed`)
  }
  const reader = new HeaderReader()
  const page = bufferView(body)
  reader.reset(page, { start: 0, end: page.length }, 'partition list')
  const previous = nothingBefore()
  const entries: PartitionListEntry[] = []
  while (entries.length < partitionCount) {
    reader.enter(entries.length)
    const entry = readEntry(reader, previous)
    remember(previous, entry)
    entries.push(entry)
  }
  if (!reader.isAtEnd) fail('bytes follow the last entry')
  return entries
}

function readEntry(reader: HeaderReader, previous: Previous): PartitionListEntry {
  const bits = reader.uint8()
  const index = bits & bit.index ? reader.uint32() : previous.index + 1
  const isFirst = previous.index === -1
  if (!isFirst && index <= previous.index) reader.fail('has an index that does not ascend')
  const key = readKey(reader, bits, previous)
  const isRangeGiven = (bits & bit.range) !== 0
  const firstSubpartition = isRangeGiven ? reader.uint32() : previous.firstSubpartition
  const lastSubpartition = isRangeGiven ? reader.uint32() : previous.lastSubpartition
  if (firstSubpartition > lastSubpartition) reader.fail('has a range that ends before it begins')
  const start =
    bits & bit.start
      ? {
          regionIndex: reader.uint32(),
          subpartition: reader.uint32(),
          byteOffset: reader.safeUint64(),
        }
      : fromBeginning
  const isPending = (bits & bit.pending) !== 0
  return { index, key, firstSubpartition, lastSubpartition, start, isPending }
}

function readKey(reader: HeaderReader, bits: number, before: Previous): PartitionKey {
  const jobId =
    bits & bit.jobId ? readId(reader, before.jobId, parseJobId) : knownId(reader, before.jobId)
  const dataSetId =
    bits & bit.dataSetId
      ? readId(reader, before.dataSetId, parseDataSetId)
      : knownId(reader, before.dataSetId)
  const partitionIndex = bits & bit.partitionIndex ? reader.uint32() : before.partitionIndex + 1
  if (partitionIndex > 0xffff_ffff) reader.fail('has a partition index past 2^32 - 1')
  const attemptId =
    bits & bit.attemptId
      ? readId(reader, before.attemptId, parseAttemptId)
      : knownId(reader, before.attemptId)
  return { jobId, dataSetId, partitionIndex, attemptId }
}

/** Of the entry before, where it was found valid. */
function knownId<T extends string>(reader: HeaderReader, before: T | ''): T {
  if (before === '')
    return reader.fail('has no valid key: an id is left out that none before it has')
  return before
}

function readId<T extends string>(
  reader: HeaderReader,
  before: T | '',
  parse: (text: string) => T,
): T {
  const shared = reader.uint8()
  if (shared > before.length) reader.fail('shares more of an id than there is')
  const text = before.slice(0, shared) + reader.latin1Byte()
  try {
    return parse(text)
  } catch (error) {
    if (!isShuffleError(error, 'INVALID_ARGUMENT')) throw error
    return reader.fail(`has no valid key: ${error.message}`)
  }
}

function fail(what: string): never {
  throw new ShuffleError('PROTOCOL', `malformed partition list: ${what}`)
}
