// Messages of a read channel (one consumer's view of one worker) and of Describe.

import { defineMessage, field } from './define-message.ts'
import { errorFields } from './error-fields.ts'
import { boolean, uint16, uint32, uint64 } from './field-types.ts'

export const OpenRead = defineMessage({
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

export const ReadOpened = defineMessage({
  name: 'ReadOpened',
  id: 33,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'Answers OpenRead at once, before any file is touched.',
  fields: {},
})

export const AddPartitions = defineMessage({
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

export const ReadEnd = defineMessage({
  name: 'ReadEnd',
  id: 35,
  direction: 'client-to-worker',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'The list is complete.',
  fields: { partitionCount: field(uint32, 'Entries of all AddPartitions of the channel.') },
})

export const DropPartition = defineMessage({
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

export const Backlog = defineMessage({
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

export const ReadData = defineMessage({
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

export const PartitionFinish = defineMessage({
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

export const PartitionFailed = defineMessage({
  name: 'PartitionFailed',
  id: 40,
  direction: 'worker-to-client',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'One entry of the list failed; the others go on. Needs no credit.',
  fields: {
    partition: field(uint32, 'Index of the entry in the list.'),
    ...errorFields,
  },
})

export const ReadFinish = defineMessage({
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

export const Describe = defineMessage({
  name: 'Describe',
  id: 48,
  direction: 'client-to-worker',
  channel: 'opens',
  body: 'control',
  bodyAbout: 'The keys as a partition list; ranges and starts are not looked at.',
  about:
    'Asks for the totals of partitions. All keys in one frame; ask again on another channel for more, BUSY when more than 32,768 keys of a connection are unanswered.',
  fields: {
    partitionCount: field(uint32, 'Entries in the body, 1 or more.'),
    withSubpartitions: field(boolean, 'Whether the bytes per subpartition are wanted too.'),
  },
})

export const Described = defineMessage({
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
