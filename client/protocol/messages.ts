// Every message of the data plane, declared once. Read this file first. The frame around them is in
// frame.ts, the entries inside data bodies in entry.ts, the rules of order and credit in WIRE.md,
// which is made from here (`npm run generate`).

import {
  defineMessage,
  field,
  type FieldValues,
  type MessageDeclaration,
} from './define-message.ts'
import {
  allocationId,
  bits64,
  boolean,
  bytes,
  clusterId,
  enumeration,
  optionalClusterId,
  optionalUint64,
  optionalWorkerId,
  partitionKey,
  text,
  uint16,
  uint32,
  uint64,
  workerId,
} from './field-types.ts'
import { challengeLengthMax, detailLengthMax, textLengthMax } from './limits.ts'

/** First field of Hello and HelloAck: "SLUI". Whoever sends something else speaks another protocol. */
export const protocolMagic = 0x534c_5549

/** The oldest and newest version that this code speaks. */
export const protocolVersions = { min: 1, max: 1 } as const

/** Feature bits of Hello; a side uses a feature only when both have set its bit. None yet. */
export const protocolFeatures = {} as const satisfies Record<string, bigint>

/** AddCredit on a read channel names no region. */
export const noRegion = 0xffff_ffff

const codecNameLengthMax = 32
const softwareLengthMax = 100

const errorCode = field(uint16, 'Code of the error table; a number not in it counts as PROTOCOL.')
const errorIsRetryable = field(boolean, 'Whether the same call may succeed when repeated.')
const errorText = field(text(textLengthMax), 'For people: what was wrong, where, what to do.')
const errorDetail = field(
  text(detailLengthMax),
  'Empty, or a JSON object of scalar fields; may be skipped.',
)

// --- The connection ---

const Hello = defineMessage({
  name: 'Hello',
  id: 1,
  direction: 'client-to-worker',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about:
    'The first frame of a connection; nothing before it. Its layout is the same in all versions, but for fields appended.',
  fields: {
    magic: field(uint32, 'The constant 0x534C5549 ("SLUI").'),
    versionMin: field(uint16, 'The oldest protocol version that the client speaks.'),
    versionMax: field(uint16, 'The newest. Both sides use the highest that both speak.'),
    features: field(bits64, 'Features that the client can use; unknown bits are ignored.'),
    clusterId: field(
      optionalClusterId,
      'The cluster that the client means; another cluster answers UNAUTHENTICATED.',
    ),
    expectedWorkerId: field(
      optionalWorkerId,
      'The worker that the client means; another worker answers WORKER_CHANGED.',
    ),
    heartbeatIntervalMs: field(uint32, 'At least this often the client sends a frame or Ping.'),
    software: field(text(softwareLengthMax), 'Name and version of the client, for people.'),
  },
})

const HelloAck = defineMessage({
  name: 'HelloAck',
  id: 2,
  direction: 'worker-to-client',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about:
    'The answer to Hello. With an empty challenge the connection is ready; else the client authenticates next.',
  fields: {
    magic: field(uint32, 'The constant 0x534C5549 ("SLUI").'),
    versionMin: field(uint16, 'The oldest protocol version that the worker speaks.'),
    versionMax: field(uint16, 'The newest. Both sides use the highest that both speak.'),
    features: field(bits64, 'Features that the worker can use; those in both sets are on.'),
    clusterId: field(clusterId, 'The cluster that the worker belongs to.'),
    workerId: field(workerId, 'Kept for ever with the data directories of the worker.'),
    workerEpoch: field(uint64, 'Raised at each start; an open write is bound to it.'),
    heartbeatIntervalMs: field(uint32, 'At least this often the worker sends a frame or Ping.'),
    bufferSizeBytes: field(uint32, 'The largest buffer size that a data set may have here.'),
    challenge: field(
      bytes(challengeLengthMax),
      'Random bytes, never used twice; empty: no authentication is wanted.',
    ),
    software: field(text(softwareLengthMax), 'Name and version of the worker, for people.'),
  },
})

const Authenticate = defineMessage({
  name: 'Authenticate',
  id: 3,
  direction: 'client-to-worker',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about:
    'Answers the challenge; nothing but Ping and Pong before it. The shared token itself never travels.',
  fields: {
    mechanism: field(
      enumeration({ hmacSha256: 1 }),
      'How the answer is made from challenge and token.',
    ),
    answer: field(
      bytes(challengeLengthMax),
      'HMAC-SHA-256 keyed with the token, over the challenge, the cluster id and the worker id, each preceded by its length as u32.',
    ),
  },
})

const Authenticated = defineMessage({
  name: 'Authenticated',
  id: 4,
  direction: 'worker-to-client',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about: 'The answer was right and the connection is ready; a wrong one is Error UNAUTHENTICATED.',
  fields: {},
})

const Ping = defineMessage({
  name: 'Ping',
  id: 5,
  direction: 'both',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about:
    'Sign of life, answered by Pong; any other frame counts as life too. Sent by either side when it has sent or received nothing for its heartbeat interval.',
  fields: { sequence: field(uint32, 'Counts the pings of the sender; Pong repeats it.') },
})

const Pong = defineMessage({
  name: 'Pong',
  id: 6,
  direction: 'both',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about: 'Answers Ping.',
  fields: { sequence: field(uint32, 'The sequence of the Ping that it answers.') },
})

const GoAway = defineMessage({
  name: 'GoAway',
  id: 7,
  direction: 'worker-to-client',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about:
    'No new channels on this connection: dial another. Channels that run are finished. A worker that drains does not send it: it refuses OpenWrite with WORKER_DRAINING and goes on serving reads.',
  fields: { reason: field(text(textLengthMax), 'For people: upgrade, new certificate.') },
})

const ErrorMessage = defineMessage({
  name: 'Error',
  id: 8,
  direction: 'both',
  channel: 'any',
  body: 'none',
  bodyAbout: '',
  about:
    'On channel 0: ends the connection. On a channel: its last frame, the number is dead on both sides and nothing is answered.',
  fields: {
    code: errorCode,
    isRetryable: errorIsRetryable,
    text: errorText,
    detail: errorDetail,
  },
})

// --- Any channel ---

const CloseChannel = defineMessage({
  name: 'CloseChannel',
  id: 9,
  direction: 'both',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'The sender gives the channel up, at any time after its opening, also before that was answered. It sends nothing more on it; the other side answers ChannelClosed unless its own last frame is already under way.',
  fields: {
    code: field(
      uint16,
      'Why, from the error table; 0: no error, for example a consumer that has enough.',
    ),
  },
})

const ChannelClosed = defineMessage({
  name: 'ChannelClosed',
  id: 10,
  direction: 'both',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'Answers CloseChannel; the last frame of the channel, whose number is now dead.',
  fields: {},
})

const AddCredit = defineMessage({
  name: 'AddCredit',
  id: 11,
  direction: 'both',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'The receiver of data may take so many more frames of data, each of up to one buffer. One-way, never answered.',
  fields: {
    credit: field(uint32, 'How many frames, 1 or more.'),
    regionIndex: field(
      uint32,
      'Writes: the region it is for; credit for a region that is finished is dropped. Reads: 0xFFFFFFFF.',
    ),
  },
})

// --- Writing ---

const OpenWrite = defineMessage({
  name: 'OpenWrite',
  id: 16,
  direction: 'client-to-worker',
  channel: 'opens',
  body: 'none',
  bodyAbout: '',
  about:
    'A producer attempt begins to write its partition. The first RegionStart may follow at once.',
  fields: {
    key: field(partitionKey, 'The partition; its attempt makes it unique for ever.'),
    allocation: field(
      allocationId,
      'By which the manager placed it here; lower than one seen for the key: STALE_ALLOCATION.',
    ),
    kind: field(
      enumeration({ map: 0 }),
      'map: all output of one producer attempt. Number 1 is reserved for reduce partitions.',
    ),
    subpartitionCount: field(uint32, 'Subpartitions of the data set, 1 or more.'),
    firstSubpartition: field(uint32, 'The first that this partition can hold; map: 0.'),
    lastSubpartition: field(uint32, 'The last, inclusive; map: subpartitionCount - 1.'),
    bufferSizeBytes: field(
      uint32,
      "Of the data set; at most the worker's own of HelloAck, else LIMIT_EXCEEDED.",
    ),
    codec: field(
      text(codecNameLengthMax),
      'How compressed entries are compressed ("lz4", "none"); stored, never used by the worker.',
    ),
    expectedBytes: field(optionalUint64, 'About how much will be written, if known.'),
  },
})

const WriteOpened = defineMessage({
  name: 'WriteOpened',
  id: 17,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'The write is open, bound to the present epoch of the worker.',
  fields: {},
})

const RegionStart = defineMessage({
  name: 'RegionStart',
  id: 18,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    "A data region begins. Sent only when the whole region lies in the client's memory. The worker reserves the space, or fails with NO_SPACE, before it grants the first credit.",
  fields: {
    regionIndex: field(uint32, '0 for the first region, then one more each.'),
    isBroadcast: field(
      boolean,
      'All its entries carry the broadcast mark and are read once by each subpartition.',
    ),
    boundBytes: field(
      uint64,
      'The most that its entries can take, uncompressed, entry headers included.',
    ),
  },
})

const WriteData = defineMessage({
  name: 'WriteData',
  id: 19,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'data',
  bodyAbout: 'One or more whole entries, at most the buffer size in all.',
  about: 'Entries of the open region, subpartitions ascending. Costs one credit of that region.',
  fields: { regionIndex: field(uint32, 'The open region.') },
})

const RegionFinish = defineMessage({
  name: 'RegionFinish',
  id: 20,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'The region is complete. The worker compares, COUNT_MISMATCH if it counted otherwise, and gives the rest of the reserved space back.',
  fields: {
    regionIndex: field(uint32, 'The open region.'),
    entryCount: field(uint64, 'Entries sent in it.'),
    byteCount: field(uint64, 'Bytes of these entries, headers included.'),
  },
})

const WriteFinish = defineMessage({
  name: 'WriteFinish',
  id: 21,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'control',
  bodyAbout:
    'A page of uncompressed payload bytes per subpartition: one u64 each, from firstSubpartition on. A broadcast entry counts for every subpartition.',
  about:
    'The producer has sent all its regions; the worker commits or fails. In as many frames as the body takes, pages ascending, the same totals in each.',
  fields: {
    regionCount: field(uint32, 'Regions finished.'),
    byteCount: field(uint64, 'Bytes of all entries sent, headers included.'),
    recordCount: field(uint64, 'Records written, as the producer counts them.'),
    firstSubpartition: field(uint32, 'The subpartition of the first number in this page.'),
    isLast: field(boolean, 'The last page; only then the worker commits.'),
  },
})

const WriteCommitted = defineMessage({
  name: 'WriteCommitted',
  id: 22,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'The partition is committed and readable. The last frame of the channel.',
  fields: {
    regionCount: field(uint32, 'Regions stored.'),
    entryCount: field(uint64, 'Entries stored.'),
    byteCount: field(uint64, 'Bytes of these entries, headers included.'),
    storedBytes: field(uint64, 'Bytes on disk, index and footer included.'),
    durability: field(
      enumeration({ none: 0, sync: 1 }),
      'none: survives the death of the process; sync: a loss of power too.',
    ),
  },
})

// --- Reading ---

const OpenRead = defineMessage({
  name: 'OpenRead',
  id: 32,
  direction: 'client-to-worker',
  channel: 'opens',
  body: 'none',
  bodyAbout: '',
  about:
    'A consumer begins to read from this worker, any number of partitions over one channel. AddPartitions may follow at once.',
  fields: {
    bufferSizeBytes: field(
      uint32,
      "Of the data set: the most that one ReadData may hold; at most the worker's own, else LIMIT_EXCEEDED.",
    ),
    initialCredit: field(uint32, 'Frames of data that the consumer can take at once; 2.'),
  },
})

const ReadOpened = defineMessage({
  name: 'ReadOpened',
  id: 33,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'Answers OpenRead at once, before any file is touched.',
  fields: {},
})

const AddPartitions = defineMessage({
  name: 'AddPartitions',
  id: 34,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'control',
  bodyAbout: 'The entries, each coded as its difference from the one before: see "Partition list".',
  about:
    'Adds entries to the list of the channel, in any number of frames until ReadEnd. Served as soon as they are known, in the order that is best for the disks.',
  fields: { partitionCount: field(uint32, 'Entries in the body, 1 or more.') },
})

const ReadEnd = defineMessage({
  name: 'ReadEnd',
  id: 35,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'The list is complete.',
  fields: { partitionCount: field(uint32, 'Entries of all AddPartitions of the channel.') },
})

const DropPartition = defineMessage({
  name: 'DropPartition',
  id: 36,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'Forget one entry of the list. What is under way of it is skipped by the client, and its credit counts as used; no PartitionFinish or PartitionFailed follows.',
  fields: { partition: field(uint32, 'Index of the entry in the list.') },
})

const Backlog = defineMessage({
  name: 'Backlog',
  id: 37,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'How many more ReadData will follow this frame on this channel, exactly or estimated; sent again before the last is used up.',
  fields: {
    bufferCount: field(uint32, 'At least 1 while anything is unsent; 0: nothing more is.'),
  },
})

const ReadData = defineMessage({
  name: 'ReadData',
  id: 38,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'data',
  bodyAbout:
    'Segments: 16 bytes that name a run, then whole entries of it; at most the buffer size in all.',
  about: 'Entries of one or more partitions of the list. Costs one credit.',
  fields: {},
})

const PartitionFinish = defineMessage({
  name: 'PartitionFinish',
  id: 39,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'One entry of the list is complete. The totals are those of the whole range by the index, whatever its start was: the consumer compares them with all that it received, over all its channels. Needs no credit.',
  fields: {
    partition: field(uint32, 'Index of the entry in the list.'),
    entryCount: field(
      uint64,
      'Entries of the range; a broadcast entry counts once for each subpartition.',
    ),
    byteCount: field(uint64, 'Bytes of these entries, headers included.'),
  },
})

const PartitionFailed = defineMessage({
  name: 'PartitionFailed',
  id: 40,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'One entry of the list failed; the others go on. Needs no credit.',
  fields: {
    partition: field(uint32, 'Index of the entry in the list.'),
    code: errorCode,
    isRetryable: errorIsRetryable,
    text: errorText,
    detail: errorDetail,
  },
})

const ReadFinish = defineMessage({
  name: 'ReadFinish',
  id: 41,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about:
    'After ReadEnd, when each entry is finished, failed or dropped. The last frame of the channel. Needs no credit.',
  fields: {
    partitionCount: field(uint32, 'Entries in the list.'),
    frameCount: field(uint64, 'ReadData frames sent on this channel.'),
    entryCount: field(uint64, 'Entries sent on this channel.'),
    byteCount: field(
      uint64,
      'Bytes of these entries, their headers included, segment headers not.',
    ),
  },
})

// --- Asking ---

const Describe = defineMessage({
  name: 'Describe',
  id: 48,
  direction: 'client-to-worker',
  channel: 'opens',
  body: 'control',
  bodyAbout: 'The keys as a partition list; ranges and starts are not looked at.',
  about:
    'Asks for the totals of partitions. All keys in one frame; ask again on another channel for more.',
  fields: {
    partitionCount: field(uint32, 'Entries in the body, 1 or more.'),
    withSubpartitions: field(boolean, 'Whether the bytes per subpartition are wanted too.'),
  },
})

const Described = defineMessage({
  name: 'Described',
  id: 49,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'control',
  bodyAbout:
    'When wanted: a page of uncompressed payload bytes per subpartition, one u64 each, from firstSubpartition on.',
  about:
    'The answer for one key, in as many frames as the body takes, pages ascending, the same totals in each; keys in any order.',
  fields: {
    partition: field(uint32, 'Index of the entry in the list of Describe.'),
    code: field(uint16, '0: committed, the totals hold; else the error, and they are 0.'),
    subpartitionCount: field(uint32, 'Subpartitions of the data set.'),
    regionCount: field(uint32, 'Regions stored.'),
    entryCount: field(uint64, 'Entries stored.'),
    byteCount: field(uint64, 'Bytes of these entries, headers included.'),
    recordCount: field(uint64, 'Records, as the producer counted them.'),
    firstSubpartition: field(uint32, 'The subpartition of the first number in this page.'),
    isLast: field(boolean, 'The last frame of the answer, and of the channel.'),
  },
})

/** All messages, by name. */
export const messages = {
  Hello,
  HelloAck,
  Authenticate,
  Authenticated,
  Ping,
  Pong,
  GoAway,
  Error: ErrorMessage,
  CloseChannel,
  ChannelClosed,
  AddCredit,
  OpenWrite,
  WriteOpened,
  RegionStart,
  WriteData,
  RegionFinish,
  WriteFinish,
  WriteCommitted,
  OpenRead,
  ReadOpened,
  AddPartitions,
  ReadEnd,
  DropPartition,
  Backlog,
  ReadData,
  PartitionFinish,
  PartitionFailed,
  ReadFinish,
  Describe,
  Described,
} as const

/** Message ids that are spoken for, and those of retired messages: never given to another. */
export const reservedMessageIds: Readonly<Record<number, string>> = {
  23: 'writes of reduce partitions (many producers, one partition)',
  24: 'writes of reduce partitions',
  64: 'moving partitions between workers',
  65: 'moving partitions between workers',
  66: 'moving partitions between workers',
}

export type MessageName = keyof typeof messages
export type MessageFields<Name extends MessageName> = FieldValues<(typeof messages)[Name]['fields']>

/** A received message: its name tells which fields it has. */
export type Message = {
  [Name in MessageName]: { readonly name: Name; readonly fields: MessageFields<Name> }
}[MessageName]

export type DataMessageName = 'WriteData' | 'ReadData'
/** A message whose body is entries in pooled memory. */
export type DataMessage = Extract<Message, { readonly name: DataMessageName }>
/** A message whose body, if any, is a plain array. */
export type ControlMessage = Exclude<Message, DataMessage>

/** The declarations in the order of their ids. */
export const messageList: readonly MessageDeclaration[] = Object.values(messages)
