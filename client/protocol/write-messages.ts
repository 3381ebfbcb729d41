// Messages of a write channel: one producer attempt writes one partition.

import { defineMessage, field } from './define-message.ts'
import {
  allocationId,
  boolean,
  enumeration,
  optionalUint64,
  partitionKey,
  text,
  uint32,
  uint64,
} from './field-types.ts'

const codecNameLengthMax = 32

export const OpenWrite = defineMessage({
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

export const WriteOpened = defineMessage({
  name: 'WriteOpened',
  id: 17,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'The write is open, bound to the present epoch of the worker.',
  fields: {},
})

export const RegionStart = defineMessage({
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

export const WriteData = defineMessage({
  name: 'WriteData',
  id: 19,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'data',
  bodyAbout: 'One or more whole entries, at most the buffer size in all.',
  about: 'Entries of the open region, subpartitions ascending. Costs one credit of that region.',
  fields: { regionIndex: field(uint32, 'The open region.') },
})

export const RegionFinish = defineMessage({
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

export const WriteFinish = defineMessage({
  name: 'WriteFinish',
  id: 21,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'control',
  bodyAbout:
    'A page of uncompressed payload bytes per subpartition: one u64 each, from firstSubpartition on; 65,536 in each page but the last. A broadcast entry counts for every subpartition.',
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

export const WriteCommitted = defineMessage({
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
