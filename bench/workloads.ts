// The workloads by letter, as shapes: how many partitions, how large the slices, who reads what.

import type { Consumer } from './load-tasks.ts'
import { mebibyte } from './series.ts'
import type { ReadWay, ShuffleCase } from './shuffle-case.ts'

export interface Scale {
  /** Payload bytes of one round. */
  readonly bytes: number
  readonly isQuick: boolean
}

const kibibyte = 1024

/** (a) write and (b) whole partitions read, in one: the second reads what the first wrote. */
export function writeCases(scale: Scale): ShuffleCase[] {
  return [
    ...(scale.isQuick ? [] : [onePartition(scale)]),
    fewPartitions(scale),
    manyPartitions(scale),
  ]
}

/** What growth is measured from. */
function onePartition(scale: Scale): ShuffleCase {
  return fewPartitions(scale, { partitions: 1, tasks: 1 })
}

function fewPartitions(
  scale: Scale,
  { partitions, tasks } = { partitions: 16, tasks: 8 },
): ShuffleCase {
  const subpartitions = 16
  const few = counted(partitions, 'partition')
  return {
    workload: 'a',
    name: `write, ${few} by ${counted(tasks, 'producer')}`,
    partitions,
    subpartitions,
    sliceBytes: sliceOf(scale.bytes / partitions / subpartitions),
    recordBytes: 4 * kibibyte - 4,
    openCount: tasks,
    partitionMemoryBytes: 8 * mebibyte,
    gateMemoryBytes: 8 * mebibyte,
    reference: { fileCount: partitions, requestBytes: mebibyte },
    reads: [
      {
        workload: 'b',
        name: `whole read, ${few} by ${counted(tasks, 'consumer')}`,
        groups: [wholePartitions(partitions, { subpartitions, consumers: tasks })],
        reference: 'sequential',
      },
    ],
  }
}

function manyPartitions(scale: Scale): ShuffleCase {
  const [partitions, subpartitions] = [scale.isQuick ? 250 : 1000, 16]
  return {
    workload: 'a',
    name: `write, ${String(partitions)} partitions open by 8 producers`,
    partitions,
    subpartitions,
    sliceBytes: sliceOf(scale.bytes / partitions / subpartitions),
    recordBytes: 4 * kibibyte - 4,
    openCount: partitions,
    // Regions of 384 KiB: all partitions are open at the same time in two processes.
    partitionMemoryBytes: 512 * kibibyte,
    gateMemoryBytes: mebibyte,
    reference: { fileCount: partitions, requestBytes: 256 * kibibyte },
    reads: [
      {
        workload: 'b',
        name: `whole read, ${String(partitions)} partitions by ${String(partitions)} consumers`,
        groups: [wholePartitions(partitions, { subpartitions, consumers: partitions })],
        reference: 'sequential',
      },
    ],
  }
}

/** (c) every consumer reads its slice of every partition. */
export function shuffleReadCases(scale: Scale): ShuffleCase[] {
  return [4 * kibibyte, 64 * kibibyte, mebibyte].map((sliceBytes) => {
    const square = Math.sqrt(scale.bytes / sliceBytes)
    const consumers = Math.max(10, Math.min(500, Math.floor(square)))
    const partitions = Math.max(4, Math.floor(scale.bytes / sliceBytes / consumers))
    return shuffleRead({ sliceBytes, partitions, consumers })
  })
}

function shuffleRead(shape: {
  readonly sliceBytes: number
  readonly partitions: number
  readonly consumers: number
}): ShuffleCase {
  const { sliceBytes, partitions, consumers } = shape
  const text = `${String(partitions)} by ${String(consumers)}, slices of ${sliceText(sliceBytes)}`
  const partitionBytes = sliceBytes * consumers
  const all = subpartitionConsumers(consumers, partitions)
  return {
    workload: 'c',
    name: `write, ${text}`,
    partitions,
    subpartitions: consumers,
    sliceBytes,
    recordBytes: Math.min(sliceBytes, 16 * kibibyte) - 4,
    openCount: 8,
    // A slice lies in one piece: a partition is one region where 64 MiB hold it.
    partitionMemoryBytes: Math.min(64 * mebibyte, Math.ceil(partitionBytes * 1.4) + 2 * mebibyte),
    gateMemoryBytes: Math.max(8 * 32 * kibibyte, Math.floor((128 * mebibyte) / consumers)),
    reference: { fileCount: 16, requestBytes: mebibyte },
    reads: [
      { workload: 'c', name: `all at once, ${text}`, groups: [all], reference: 'sequential' },
      {
        workload: 'c',
        name: `a tenth at a time, ${text}`,
        groups: tenths(all),
        reference: 'random',
      },
    ],
  }
}

/** (d) written and read at the same time. */
export function togetherCase(scale: Scale): ShuffleCase {
  const shuffle = fewPartitions({ ...scale, bytes: scale.bytes / 2 })
  return {
    ...shuffle,
    workload: 'd',
    name: 'written first, half of the bytes',
    isWrittenMeanwhile: true,
    reads: shuffle.reads.map((way) => ({
      ...way,
      workload: 'd',
      name: 'whole read by 8 consumers with a write by 8 producers beside it',
    })),
  }
}

/** (e) every record for every consumer: stored once, read by each. */
export function broadcastCase(scale: Scale): ShuffleCase {
  const [partitions, consumers] = [8, 16]
  return {
    workload: 'e',
    name: 'write, 8 partitions broadcast to 16',
    partitions,
    subpartitions: consumers,
    sliceBytes: sliceOf(scale.bytes / partitions / consumers),
    recordBytes: 4 * kibibyte - 4,
    openCount: 8,
    partitionMemoryBytes: 8 * mebibyte,
    gateMemoryBytes: 8 * mebibyte,
    isBroadcast: true,
    reference: { fileCount: partitions, requestBytes: mebibyte },
    reads: [
      {
        workload: 'e',
        name: 'read, 8 partitions broadcast to 16',
        groups: [subpartitionConsumers(consumers, partitions)],
        reference: 'sequential',
      },
    ],
  }
}

/** (f) one consumer of a hundred has nine tenths of all. */
export function skewCase(scale: Scale): ShuffleCase {
  const [partitions, consumers] = [16, 100]
  const partitionBytes = scale.bytes / partitions
  return {
    workload: 'f',
    name: 'write, 16 by 100, nine tenths for one',
    partitions,
    subpartitions: consumers,
    sliceBytes: sliceOf((partitionBytes * 0.1) / (consumers - 1)),
    firstSliceBytes: sliceOf(partitionBytes * 0.9),
    recordBytes: 4 * kibibyte - 4,
    openCount: 8,
    partitionMemoryBytes: 8 * mebibyte,
    gateMemoryBytes: 2 * mebibyte,
    reference: { fileCount: partitions, requestBytes: mebibyte },
    reads: [
      {
        workload: 'f',
        name: 'read, 16 by 100, nine tenths for one',
        groups: [subpartitionConsumers(consumers, partitions)],
        reference: 'sequential',
      },
    ],
  }
}

/** (i) what LZ4, the sync of a commit and small buffers cost. */
export function optionCases(scale: Scale): ShuffleCase[] {
  const few = fewPartitions({ ...scale, bytes: scale.bytes / 3 })
  const variant = (text: string, changes: Partial<ShuffleCase>): ShuffleCase => ({
    ...few,
    ...changes,
    workload: 'i',
    name: `write, ${text}`,
    reads: few.reads.map((way) => ({ ...way, workload: 'i', name: `whole read, ${text}` })),
  })
  return [
    variant('rows, not compressed', { isCompressible: true, withChecksumCost: true }),
    variant('rows, LZ4', { isCompressible: true, codec: 'lz4' }),
    variant('rows, not compressed, buffers of 128 KiB', {
      isCompressible: true,
      bufferSizeBytes: 128 * kibibyte,
      workerArguments: ['--buffer-size=128kb'],
    }),
    variant('commits synced', { workerArguments: ['--durability=sync'] }),
  ]
}

/** (j) every one of a thousand open channels lists a thousand partitions. */
export function openChannelsCase(scale: Scale): ShuffleCase {
  const count = scale.isQuick ? 100 : 1000
  return {
    workload: 'j',
    name: `write, ${String(count)} partitions of ${String(count)} slices`,
    partitions: count,
    subpartitions: count,
    sliceBytes: 512,
    recordBytes: 512,
    openCount: 8,
    partitionMemoryBytes: 2 * mebibyte,
    gateMemoryBytes: 4 * 32 * kibibyte,
    reference: { fileCount: 16, requestBytes: mebibyte },
    reads: [
      {
        workload: 'j',
        name: `read, ${String(count)} partitions by ${String(count)} channels`,
        groups: [subpartitionConsumers(count, count)],
        reference: 'sequential',
      },
    ],
  }
}

/** Neighbouring subpartitions are read at the same time, as a runtime starts its tasks. */
function tenths(consumers: readonly Consumer[]): (readonly Consumer[])[] {
  const size = Math.ceil(consumers.length / 10)
  return Array.from({ length: 10 }, (_, index) =>
    consumers.slice(index * size, (index + 1) * size),
  ).filter((group) => group.length > 0)
}

export function subpartitionConsumers(consumers: number, partitions: number): Consumer[] {
  const inputs = Array.from({ length: partitions }, (_, index) => index)
  return Array.from({ length: consumers }, (_, index) => ({ first: index, last: index, inputs }))
}

export function wholePartitions(
  partitions: number,
  read: { readonly subpartitions: number; readonly consumers: number },
): Consumer[] {
  return Array.from({ length: read.consumers }, (_, consumer) => ({
    first: 0,
    last: read.subpartitions - 1,
    inputs: Array.from({ length: partitions }, (_, index) => index).filter(
      (index) => index % read.consumers === consumer,
    ),
  }))
}

/** Whole records of 4 KiB with their framing, so that entries are full. */
function sliceOf(bytes: number): number {
  return Math.max(1, Math.floor(bytes / (4 * kibibyte))) * (4 * kibibyte - 4)
}

function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${String(count)} ${what}s`
}

function sliceText(bytes: number): string {
  return bytes >= mebibyte ? `${String(bytes / mebibyte)} MiB` : `${String(bytes / kibibyte)} KiB`
}

export type { ReadWay }
