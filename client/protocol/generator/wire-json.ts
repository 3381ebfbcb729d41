// wire.json: layout of every message and all golden vectors, for the tests of this and of other
// languages' clients. Numbers that may pass 2^53 - 1 elsewhere (u64, bits64) are strings, bytes are
// hexadecimal.

import { errorTable } from '../../common/errors.ts'
import { entryFlags, entryTypes } from '../entry.ts'
import { limitTable } from '../limits.ts'
import { protocolMagic, protocolVersions, reservedMessageIds } from '../messages.ts'
import {
  refusedEntryVectors,
  refusedPartitionListVectors,
  refusedVectors,
  toleratedVectors,
  vectorWorker,
} from './stream-vectors.ts'
import {
  authenticationVectors,
  byteCountVectors,
  entryVectors,
  type Json,
  messageVectors,
  partitionListVectors,
  segmentVectors,
} from './vectors.ts'

/** `notice` stands in line 1. */
export function wireJson(notice: string): string {
  const content: Json = {
    magic: protocolMagic,
    versions: protocolVersions,
    limits: Object.fromEntries(
      Object.entries(limitTable).map(([name, { value }]) => [name, value]),
    ),
    errorCodes: Object.fromEntries(
      Object.entries(errorTable).map(([name, { wireCode }]) => [name, wireCode]),
    ),
    entryFlags,
    entryTypes,
    reservedMessageIds,
    messages: messageVectors(),
    entries: entryVectors(),
    readData: segmentVectors(),
    partitionLists: partitionListVectors(),
    byteCounts: byteCountVectors(),
    authentication: authenticationVectors(),
    tolerated: { receiver: vectorWorker, streams: toleratedVectors() },
    refused: { receiver: vectorWorker, streams: refusedVectors() },
    refusedEntries: refusedEntryVectors(),
    refusedPartitionLists: refusedPartitionListVectors(),
  }
  const text = JSON.stringify(content, undefined, 1)
  return `{ "//": ${JSON.stringify(notice)},\n${text.slice(text.indexOf('\n') + 1)}\n`
}
