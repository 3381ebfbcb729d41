// Messages of the connection itself, and those that any channel may carry.

import { defineMessage, field } from './define-message.ts'
import { errorFields } from './error-fields.ts'
import {
  bits64,
  bytes,
  clusterId,
  enumeration,
  optionalClusterId,
  optionalWorkerId,
  text,
  uint16,
  uint32,
  uint64,
  workerId,
} from './field-types.ts'
import { challengeLengthMax, textLengthMax } from './limits.ts'

const softwareLengthMax = 100

export const Hello = defineMessage({
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

export const HelloAck = defineMessage({
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

export const Authenticate = defineMessage({
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

export const Authenticated = defineMessage({
  name: 'Authenticated',
  id: 4,
  direction: 'worker-to-client',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about: 'The answer was right and the connection is ready; a wrong one is Error UNAUTHENTICATED.',
  fields: {},
})

export const Ping = defineMessage({
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

export const Pong = defineMessage({
  name: 'Pong',
  id: 6,
  direction: 'both',
  channel: 'connection',
  body: 'none',
  bodyAbout: '',
  about: 'Answers Ping.',
  fields: { sequence: field(uint32, 'The sequence of the Ping that it answers.') },
})

export const GoAway = defineMessage({
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

export const ErrorMessage = defineMessage({
  name: 'Error',
  id: 8,
  direction: 'both',
  channel: 'any',
  body: 'none',
  bodyAbout: '',
  about:
    'On channel 0: ends the connection. On a channel: its last frame, the number is dead on both sides and nothing is answered.',
  fields: {
    ...errorFields,
  },
})

export const CloseChannel = defineMessage({
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

export const ChannelClosed = defineMessage({
  name: 'ChannelClosed',
  id: 10,
  direction: 'both',
  channel: 'channel',
  body: 'none',
  bodyAbout: '',
  about: 'Answers CloseChannel; the last frame of the channel, whose number is now dead.',
  fields: {},
})

export const AddCredit = defineMessage({
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
