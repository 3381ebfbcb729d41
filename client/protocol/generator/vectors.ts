// Golden vectors: what each message, entry and list looks like on the wire. Other languages' clients
// test against them; a released vector never changes.

import { type Field, type MessageDeclaration } from '../define-message.ts'
import { byteCountPages } from '../byte-counts.ts'
import { challengeAnswer } from '../authentication.ts'
import { parseClusterId, parseWorkerId, type PartitionKey } from '../../common/ids.ts'
import {
  broadcastSubpartition,
  entryFlags,
  entryHeaderLength,
  EntryChecksum,
  entryTypes,
  writeEntryHeader,
} from '../entry.ts'
import { partitionKey } from '../field-types.ts'
import { FrameEncoder } from '../frame-encoder.ts'
import { messageList } from '../messages.ts'
import { encodePartitionList, fromBeginning, type PartitionListEntry } from '../partition-list.ts'
import { segmentHeaderLength, writeSegmentHeader } from '../read-segment.ts'

export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

type Example = 'smallest' | 'largest'

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}

/** One frame as bytes. */
export function frameBytes(
  declaration: MessageDeclaration,
  channelId: number,
  values: Readonly<Record<string, unknown>>,
  body: Uint8Array = new Uint8Array(0),
): Buffer {
  const encoder = new FrameEncoder()
  encoder.append(declaration, channelId, values, [body])
  return Buffer.concat(encoder.take())
}

/** Every field of the declaration with its smallest or its largest value. */
export function exampleValues(
  declaration: MessageDeclaration,
  example: Example,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(declaration.fields).map(([name, { type }]) => [name, type.examples[example]]),
  )
}

/** Layout and vectors of all messages. */
export function messageVectors(): Json {
  return messageList.map((declaration) => ({
    name: declaration.name,
    id: declaration.id,
    direction: declaration.direction,
    channel: declaration.channel,
    body: declaration.body,
    fields: Object.entries(declaration.fields).map(([name, { type, since }]) => ({
      name,
      wireType: type.wireType,
      since,
    })),
    vectors: (['smallest', 'largest'] as const).map((example) => vector(declaration, example)),
  }))
}

function vector(declaration: MessageDeclaration, example: Example): Json {
  const channelId = exampleChannel(declaration, example)
  const values = exampleValues(declaration, example)
  const body = exampleBody(declaration, example)
  return {
    example,
    channelId,
    fields: Object.fromEntries(
      Object.entries(declaration.fields).map(([name, field]) => [
        name,
        jsonOfField(field, values[name]),
      ]),
    ),
    body: hex(body),
    frame: hex(frameBytes(declaration, channelId, values, body)),
  }
}

function exampleChannel(declaration: MessageDeclaration, example: Example): number {
  if (declaration.channel === 'connection') return 0
  if (example === 'largest') return 0xffff_ffff
  return declaration.channel === 'any' ? 0 : 1
}

/** Bodies of these vectors try the frame alone; what bodies hold has vectors of its own. */
function exampleBody(declaration: MessageDeclaration, example: Example): Uint8Array {
  if (declaration.body === 'none') return new Uint8Array(0)
  if (declaration.body === 'control') {
    return Uint8Array.from({ length: example === 'smallest' ? 0 : 16 }, (_, index) => index)
  }
  const entries = entryExamples.slice(0, example === 'smallest' ? 1 : 2)
  return Buffer.concat(entries.map(({ bytes }) => bytes))
}

function jsonOfField(field: Field<unknown>, value: unknown): Json {
  if (value === undefined) return null
  if (value instanceof Uint8Array) return hex(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') {
    return field.type.wireType.startsWith('u64') ? String(value) : value
  }
  if (field.type.wireType === 'allocationId') {
    const epochs = Object.entries(value as object)
    return Object.fromEntries(epochs.map(([name, epoch]) => [name, String(epoch)]))
  }
  return value as Json
}

interface EntryExample {
  readonly about: string
  readonly key: PartitionKey
  readonly regionIndex: number
  readonly subpartition: number
  readonly position: number
  readonly flags: number
  readonly type: number
  readonly payload: Uint8Array
  readonly checksum: number
  readonly bytes: Buffer
}

function entryExample(facts: Omit<EntryExample, 'checksum' | 'bytes'>): EntryExample {
  const { key, payload, ...identity } = facts
  const checksum = new EntryChecksum(key).of(identity, payload)
  const bytes = Buffer.alloc(entryHeaderLength + payload.length)
  writeEntryHeader(bytes, 0, { ...identity, length: payload.length, checksum })
  bytes.set(payload, entryHeaderLength)
  return { ...facts, checksum, bytes }
}

const sample = Buffer.from('The quick brown fox jumps over the lazy dog')
/** The sample twice as one raw LZ4 block: 43 literals, a match of 38 bytes, 5 literals. */
const compressedSample = Buffer.concat([
  Buffer.from([0, 0, 0, 86, 0xff, 28]),
  sample,
  Buffer.from([43, 0, 19, 0x50]),
  sample.subarray(38),
])

const { smallest: smallKey, largest: largeKey } = partitionKey.examples

export const entryExamples: readonly EntryExample[] = [
  entryExample({
    about: 'no payload, everything zero',
    key: smallKey,
    regionIndex: 0,
    subpartition: 0,
    position: 0,
    flags: 0,
    type: entryTypes.data,
    payload: new Uint8Array(0),
  }),
  entryExample({
    about: 'data, the last entry of its run',
    key: largeKey,
    regionIndex: 7,
    subpartition: 32_767,
    position: 3,
    flags: entryFlags.lastOfRun,
    type: entryTypes.data,
    payload: sample,
  }),
  entryExample({
    about: 'compressed: uncompressed length 86, then a raw LZ4 block',
    key: largeKey,
    regionIndex: 7,
    subpartition: 1,
    position: 0,
    flags: entryFlags.compressed | entryFlags.lastOfRun,
    type: entryTypes.data,
    payload: compressedSample,
  }),
  entryExample({
    about: 'an event of the runtime in a broadcast region',
    key: largeKey,
    regionIndex: 8,
    subpartition: broadcastSubpartition,
    position: 0,
    flags: entryFlags.lastOfRun,
    type: entryTypes.endOfPartition,
    payload: Buffer.from([0, 0, 0, 0]),
  }),
]

export function entryVectors(): Json {
  return entryExamples.map(({ key, payload, bytes, ...rest }) => ({
    ...rest,
    key: { ...key },
    payload: hex(payload),
    bytes: hex(bytes),
  }))
}

/** One body of ReadData. */
export function segmentVectors(): Json {
  const segments = entryExamples.slice(1, 3).map((entry, partition) => {
    const header = {
      partition,
      regionIndex: entry.regionIndex,
      subpartition: entry.subpartition,
      byteLength: entry.bytes.length,
    }
    const bytes = Buffer.alloc(segmentHeaderLength + entry.bytes.length)
    writeSegmentHeader(bytes, 0, header)
    bytes.set(entry.bytes, segmentHeaderLength)
    return { header, bytes }
  })
  return {
    segments: segments.map(({ header }) => header),
    body: hex(Buffer.concat(segments.map(({ bytes }) => bytes))),
  }
}

const listExamples: readonly (readonly PartitionListEntry[])[] = [
  [
    {
      index: 0,
      key: smallKey,
      firstSubpartition: 0,
      lastSubpartition: 0,
      start: fromBeginning,
      isPending: false,
    },
  ],
  [
    listEntry({ index: 0, partitionIndex: 0, attempt: 'attempt-0-0' }),
    listEntry({ index: 1, partitionIndex: 1, attempt: 'attempt-1-0' }),
    { ...listEntry({ index: 2, partitionIndex: 2, attempt: 'attempt-1-0' }), isPending: true },
    {
      ...listEntry({ index: 7, partitionIndex: 2, attempt: 'attempt-2-1' }),
      lastSubpartition: 0xffff_ffff,
      start: { regionIndex: 5, subpartition: 12, byteOffset: Number.MAX_SAFE_INTEGER },
    },
    { ...listEntry({ index: 8, partitionIndex: 0, attempt: 'x' }), key: largeKey },
  ],
]

function listEntry(facts: {
  readonly index: number
  readonly partitionIndex: number
  readonly attempt: string
}): PartitionListEntry {
  return {
    index: facts.index,
    key: {
      ...smallKey,
      partitionIndex: facts.partitionIndex,
      attemptId: facts.attempt as PartitionKey['attemptId'],
    },
    firstSubpartition: 10,
    lastSubpartition: 19,
    start: fromBeginning,
    isPending: false,
  }
}

export function partitionListVectors(): Json {
  return listExamples.map((entries) => ({
    entries: entries.map(({ key, start, ...rest }) => ({
      ...rest,
      key: { ...key },
      start: { ...start, byteOffset: String(start.byteOffset) },
    })),
    bodies: encodePartitionList(entries).map(({ body }) => hex(body)),
  }))
}

export function byteCountVectors(): Json {
  return [[0], [1, 0, Number.MAX_SAFE_INTEGER]].map((counts) => ({
    counts: counts.map(String),
    bodies: byteCountPages(counts).map(({ body }) => hex(body)),
  }))
}

export function authenticationVectors(): Json {
  const challenge = Uint8Array.from({ length: 32 }, (_, index) => index)
  return ['a', 'a long token with spaces and ümlauts'].map((token) => {
    const clusterId = parseClusterId('cluster-1')
    const workerId = parseWorkerId('worker-0123456789abcdef')
    const answer = challengeAnswer({ token, challenge, clusterId, workerId })
    return { token, challenge: hex(challenge), clusterId, workerId, answer: hex(answer) }
  })
}
