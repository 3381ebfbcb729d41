// What the checksums of entries cost by themselves. They can't be switched off, so this is how the bench
// says what they take: the client's own code over entries of one size, in memory that the caches don't
// hold. A producer pays it once for each byte, a consumer once more; the worker never.

import { parseAttemptId, parseDataSetId, parseJobId } from '../client/index.ts'
import { EntryChecksum } from '../client/protocol/entry.ts'
import { gigabyte } from './series.ts'

export interface ChecksumTask {
  readonly payloadBytes: number
  readonly totalBytes: number
}

/** More than the caches of a processor, less than anybody misses. */
const memoryBytes = 64 * 1024 * 1024

/** Seconds of processor time for each GB of payload. */
export function checksumCost({ payloadBytes, totalBytes }: ChecksumTask): number {
  const memory = Buffer.alloc(memoryBytes, 0x5a)
  const checksum = new EntryChecksum({
    jobId: parseJobId('job'),
    dataSetId: parseDataSetId('data'),
    partitionIndex: 0,
    attemptId: parseAttemptId('0'),
  })
  const before = process.cpuUsage()
  let sum = 0
  for (let done = 0, position = 0; done < totalBytes; done += payloadBytes) {
    if (position + payloadBytes > memoryBytes) position = 0
    const identity = { regionIndex: 0, subpartition: 1, position: done, flags: 0, type: 0 }
    sum ^= checksum.of(identity, memory.subarray(position, position + payloadBytes))
    position += payloadBytes
  }
  const { user, system } = process.cpuUsage(before)
  if (!Number.isInteger(sum)) throw new Error('a checksum is a number')
  return ((user + system) / 1e6 / totalBytes) * gigabyte
}
