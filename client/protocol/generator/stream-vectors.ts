// What a receiver makes of a stream that is wrong, or newer than itself: bytes, and the code of the
// error that ends the connection, or the messages that are understood. Each begins with the receiver
// in a phase: `hello` (nothing has come), `ready` (after the handshake).

import { assert } from '../../common/assert.ts'
import type { ErrorCode } from '../../common/errors.ts'
import { parseClusterId, parseWorkerId } from '../../common/ids.ts'
import {
  controlBodyLengthMax,
  dataBodyLengthMax,
  headerLengthMax,
  textLengthMax,
} from '../limits.ts'
import { messages, protocolMagic } from '../messages.ts'
import { frameLengthMin } from '../frame.ts'
import type { MessageDeclaration } from '../define-message.ts'
import { entryExamples, exampleValues, frameBytes, hex, type Json } from './vectors.ts'

/** The receiver of the vectors is this worker, which wants no token. */
export const vectorWorker = {
  clusterId: parseClusterId('cluster-1'),
  workerId: parseWorkerId('worker-1'),
} as const

interface StreamVector {
  readonly about: string
  readonly phase: 'hello' | 'ready'
  readonly bytes: Buffer
}

interface RawFrame {
  readonly type: number
  readonly channelId?: number
  readonly header?: Uint8Array
  readonly body?: Uint8Array
  readonly flags?: number
  /** Instead of the true one. */
  readonly length?: number
  readonly headerLength?: number
}

const nothing = Buffer.alloc(0)

function raw(frame: RawFrame): Buffer {
  const { header = nothing, body = nothing } = frame
  const prefix = Buffer.alloc(12)
  prefix.writeUInt32BE(frame.length ?? frameLengthMin + header.length + body.length, 0)
  prefix.writeUInt8(frame.type, 4)
  prefix.writeUInt8(frame.flags ?? 0, 5)
  prefix.writeUInt16BE(frame.headerLength ?? header.length, 6)
  prefix.writeUInt32BE(frame.channelId ?? 0, 8)
  return Buffer.concat([prefix, header, body])
}

function headerOf(declaration: MessageDeclaration, change: Readonly<Record<string, unknown>> = {}) {
  return frameBytes(declaration, 1, {
    ...exampleValues(declaration, 'smallest'),
    ...change,
  }).subarray(12)
}

function frame(
  declaration: MessageDeclaration,
  channelId: number,
  change: Readonly<Record<string, unknown>> = {},
): Buffer {
  return frameBytes(declaration, channelId, {
    ...exampleValues(declaration, 'smallest'),
    ...change,
  })
}

/** A frame whose header has some bytes overwritten. */
function patched(
  declaration: MessageDeclaration,
  offset: number,
  bytes: readonly number[],
): Buffer {
  const header = Buffer.from(headerOf(declaration))
  header.set(bytes, offset)
  return raw({ type: declaration.id, channelId: 1, header })
}

const rightHello = {
  magic: protocolMagic,
  versionMin: 1,
  versionMax: 1,
  ...{ clusterId: vectorWorker.clusterId, expectedWorkerId: vectorWorker.workerId },
}
const hello = frame(messages.Hello, 0, rightHello)
const unknownType = 250

interface Refused extends StreamVector {
  readonly code: ErrorCode
}

function refused(about: string, bytes: Buffer, code: ErrorCode = 'PROTOCOL'): Refused {
  return { about, phase: 'ready', bytes, code }
}

function refusedAtHello(about: string, bytes: Buffer, code: ErrorCode = 'PROTOCOL'): Refused {
  return { about, phase: 'hello', bytes, code }
}

const brokenFrames: readonly Refused[] = [
  refused('a length above all limits', raw({ type: unknownType, length: 0xffff_ffff })),
  refused('a length that does not hold its own prefix', raw({ type: 5, length: 7 })),
  refused(
    'a header longer than the frame',
    raw({ type: messages.Ping.id, length: 12, headerLength: 5, header: Buffer.alloc(4) }),
  ),
  refused(
    'a header above its limit',
    raw({
      type: messages.Ping.id,
      length: frameLengthMin + headerLengthMax + 1,
      headerLength: headerLengthMax + 1,
    }),
  ),
  refused(
    'a body where there is none',
    raw({ type: messages.Ping.id, header: Buffer.alloc(4), body: Buffer.alloc(1) }),
  ),
  refused(
    'a control body above its limit',
    raw({
      type: messages.AddPartitions.id,
      channelId: 1,
      headerLength: 4,
      length: frameLengthMin + 4 + controlBodyLengthMax + 1,
    }),
  ),
  refused(
    'a data body above its limit',
    raw({
      type: messages.WriteData.id,
      channelId: 1,
      headerLength: 4,
      length: frameLengthMin + 4 + dataBodyLengthMax + 1,
    }),
  ),
  refused(
    'a data body without an entry',
    raw({ type: messages.WriteData.id, channelId: 1, header: Buffer.alloc(4) }),
  ),
]

const brokenHeaders: readonly Refused[] = [
  refused(
    'a header that ends inside a field of version 1',
    raw({
      type: messages.RegionStart.id,
      channelId: 1,
      header: headerOf(messages.RegionStart).subarray(0, 12),
    }),
  ),
  refused(
    'a header without a field of version 1',
    raw({ type: messages.RegionStart.id, channelId: 1, header: Buffer.alloc(4) }),
  ),
  refused('a boolean of 2', patched(messages.RegionStart, 4, [2])),
  refused('a number above 2^53 - 1', patched(messages.RegionStart, 5, [0, 0x20])),
  refused(
    'an optional number above 2^53 - 1 that is not all ones',
    patched(
      messages.OpenWrite,
      headerOf(messages.OpenWrite).length - 8,
      [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
    ),
  ),
  refused('an id with a space', patched(messages.OpenWrite, 2, [0x20])),
  refused('an empty id', patched(messages.OpenWrite, 0, [0, 0])),
  refused('a kind that nobody knows', patched(messages.OpenWrite, 37, [9])),
  refused(
    'text that is not UTF-8',
    raw({
      type: messages.Error.id,
      channelId: 1,
      header: Buffer.concat([Buffer.from([0, 1, 0, 0, 2, 0xc3, 0x28]), Buffer.alloc(2)]),
    }),
  ),
  refused(
    'text above its limit',
    raw({
      type: messages.Error.id,
      channelId: 1,
      header: Buffer.concat([
        Buffer.from([0, 1, 0, (textLengthMax + 1) >> 8, (textLengthMax + 1) & 0xff]),
        Buffer.alloc(textLengthMax + 3, 'x'),
      ]),
    }),
  ),
]

const brokenOrder: readonly Refused[] = [
  refused('a message that only a worker sends', frame(messages.WriteOpened, 1)),
  refused('a connection message on a channel', frame(messages.Ping, 5)),
  refused('a channel message on channel 0', frame(messages.RegionStart, 0)),
  refused('a channel opened on number 0', frame(messages.OpenRead, 0)),
  refused(
    'a channel number used twice',
    Buffer.concat([frame(messages.OpenRead, 1), frame(messages.OpenRead, 1)]),
  ),
  refused(
    'a channel number lower than one before',
    Buffer.concat([frame(messages.OpenRead, 2), frame(messages.OpenWrite, 1)]),
  ),
  refused('a second Hello', hello),
  refused('Authenticate after the handshake', frame(messages.Authenticate, 0)),
  refusedAtHello('Ping before Hello', frame(messages.Ping, 0)),
  refusedAtHello('OpenRead before Hello', frame(messages.OpenRead, 1)),
  refusedAtHello('an unknown type before Hello', raw({ type: unknownType })),
  refusedAtHello('an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: worker\r\n\r\n')),
  refusedAtHello(
    'another protocol behind the same frame',
    frame(messages.Hello, 0, { ...rightHello, magic: 1 }),
  ),
  refusedAtHello(
    'a client that speaks only newer versions',
    frame(messages.Hello, 0, { ...rightHello, versionMin: 60_000, versionMax: 60_001 }),
    'UNSUPPORTED_VERSION',
  ),
  refusedAtHello(
    'a client that speaks only older versions',
    frame(messages.Hello, 0, { ...rightHello, versionMin: 0, versionMax: 0 }),
    'UNSUPPORTED_VERSION',
  ),
  refusedAtHello(
    'a client of another cluster',
    frame(messages.Hello, 0, { ...rightHello, clusterId: parseClusterId('cluster-2') }),
    'UNAUTHENTICATED',
  ),
  refusedAtHello(
    'a client that means another worker',
    frame(messages.Hello, 0, { ...rightHello, expectedWorkerId: parseWorkerId('worker-2') }),
    'WORKER_CHANGED',
  ),
]

export const refusedStreams: readonly Refused[] = [
  ...brokenFrames,
  ...brokenHeaders,
  ...brokenOrder,
]

interface Tolerated extends StreamVector {
  /** Names of the messages that are understood, in order. */
  readonly messages: readonly string[]
}

const readEnd = frame(messages.ReadEnd, 3)

export const toleratedStreams: readonly Tolerated[] = [
  {
    about: 'an unknown type is skipped by its length',
    phase: 'ready',
    bytes: Buffer.concat([
      raw({ type: unknownType, channelId: 9, header: Buffer.alloc(3), body: Buffer.alloc(100) }),
      raw({ type: unknownType }),
      readEnd,
    ]),
    messages: ['ReadEnd'],
  },
  {
    about: 'header fields that a newer version appended are skipped',
    phase: 'ready',
    bytes: Buffer.concat([
      raw({
        type: messages.ReadEnd.id,
        channelId: 3,
        header: Buffer.concat([headerOf(messages.ReadEnd), Buffer.from('newer')]),
      }),
      readEnd,
    ]),
    messages: ['ReadEnd', 'ReadEnd'],
  },
  {
    about: 'flags that a newer version may set are ignored',
    phase: 'ready',
    bytes: raw({
      type: messages.ReadEnd.id,
      channelId: 3,
      header: headerOf(messages.ReadEnd),
      flags: 0xff,
    }),
    messages: ['ReadEnd'],
  },
  {
    about:
      'an older client that also speaks this version, with unknown features and a longer Hello',
    phase: 'hello',
    bytes: Buffer.concat([
      raw({
        type: messages.Hello.id,
        header: Buffer.concat([
          headerOf(messages.Hello, {
            ...rightHello,
            versionMin: 0,
            versionMax: 60_000,
            features: 0xffff_ffff_ffff_ffffn,
          }),
          Buffer.from('newer'),
        ]),
      }),
      readEnd,
    ]),
    messages: ['ReadEnd'],
  },
]

export function refusedVectors(): Json {
  return refusedStreams.map(({ bytes, ...rest }) => ({ ...rest, bytes: hex(bytes) }))
}

export function toleratedVectors(): Json {
  return toleratedStreams.map(({ bytes, ...rest }) => ({ ...rest, bytes: hex(bytes) }))
}

/** Bodies of AddPartitions that are refused with PROTOCOL. */
export const refusedPartitionLists: readonly {
  readonly about: string
  readonly partitionCount: number
  readonly body: Buffer
}[] = [
  { about: 'no entry', partitionCount: 0, body: nothing },
  { about: 'fewer bytes than entries', partitionCount: 1, body: nothing },
  { about: 'more entries than a frame may have', partitionCount: 0xffff_ffff, body: nothing },
  { about: 'an empty key', partitionCount: 1, body: Buffer.from([0]) },
  {
    about: 'an id that shares what is not there',
    partitionCount: 1,
    body: Buffer.from([7, 1, 0, 0, 1, 0x61, 0, 1, 0x61]),
  },
  {
    about: 'bytes after the last entry',
    partitionCount: 1,
    body: Buffer.from([7, 0, 1, 0x61, 0, 1, 0x61, 0, 1, 0x61, 0]),
  },
  {
    about: 'a range that ends before it begins',
    partitionCount: 1,
    body: Buffer.from([23, 0, 1, 0x61, 0, 1, 0x61, 0, 1, 0x61, 0, 0, 0, 1, 0, 0, 0, 0]),
  },
  {
    about: 'an index that does not ascend',
    partitionCount: 2,
    body: Buffer.from([7, 0, 1, 0x61, 0, 1, 0x61, 0, 1, 0x61, 128, 0, 0, 0, 0]),
  },
  {
    about: 'a start whose bytes are above 2^53 - 1',
    partitionCount: 1,
    body: Buffer.from([
      39, 0, 1, 0x61, 0, 1, 0x61, 0, 1, 0x61, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0,
    ]),
  },
]

export function refusedPartitionListVectors(): Json {
  return refusedPartitionLists.map(({ body, ...rest }) => ({
    ...rest,
    body: hex(body),
    code: 'PROTOCOL',
  }))
}

const rightEntry = entryExamples[1]

/** Entries as a consumer finds them that must not get through: DATA_CORRUPT. */
function corruptEntries(): readonly { readonly about: string; readonly bytes: Buffer }[] {
  assert(rightEntry !== undefined, 'there are examples of entries')
  const { bytes } = rightEntry
  const changed = (offset: number, value: number) => {
    const copy = Buffer.from(bytes)
    copy[offset] = value
    return copy
  }
  return [
    { about: 'a payload with one bit changed', bytes: changed(20, (bytes[20] ?? 0) ^ 1) },
    { about: 'a checksum with one bit changed', bytes: changed(15, (bytes[15] ?? 0) ^ 1) },
    { about: 'another subpartition', bytes: changed(7, 0) },
    { about: 'another type', bytes: changed(9, 1) },
    { about: 'no mark of the end of the run', bytes: changed(8, 0) },
    { about: 'an unknown flag', bytes: changed(8, 6) },
    { about: 'a reserved byte that is set', bytes: changed(11, 1) },
    { about: 'a length that passes the end', bytes: changed(3, bytes.length) },
    { about: 'a payload that is cut off', bytes: bytes.subarray(0, bytes.length - 1) },
    { about: 'a header that is cut off', bytes: bytes.subarray(0, 15) },
  ]
}

/** Each stands where the identity given says. */
export function refusedEntryVectors(): Json {
  assert(rightEntry !== undefined, 'there are examples of entries')
  const { key, regionIndex, position } = rightEntry
  return corruptEntries().map(({ about, bytes }) => ({
    about,
    key: { ...key },
    regionIndex,
    position,
    bytes: hex(bytes),
    code: 'DATA_CORRUPT',
  }))
}
