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
  return [fewPartitions(scale), manyPartitions(scale)]
}

function fewPartitions(scale: Scale): ShuffleCase {
  const [partitions, subpartitions] = [16, 16]
  return {
    workload: 'a',
    name: 'write, 16 partitions by 8 producers',
    partitions,
    subpartitions,
    sliceBytes: sliceOf(scale.bytes / partitions / subpartitions),
    recordBytes: 4 * kibibyte - 4,
    openCount: 8,
    partitionMemoryBytes: 8 * mebibyte,
    gateMemoryBytes: 8 * mebibyte,
    reference: { fileCount: partitions, requestBytes: mebibyte },
    reads: [
      {
        workload: 'b',
        name: 'whole read, 16 partitions by 8 consumers',
        groups: [wholePartitions(partitions, { subpartitions, consumers: 8 })],
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

function sliceText(bytes: number): string {
  return bytes >= mebibyte ? `${String(bytes / mebibyte)} MiB` : `${String(bytes / kibibyte)} KiB`
}

export type { ReadWay }
