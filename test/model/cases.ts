// The runs of the model: what is written and read, and the figures that come out. All are virtual
// time, so the same on every machine.

import { type DataShape, totalBytes } from './data-shape.ts'
import type { ModelConsumer } from './model-consumer.ts'
import { type ConsumerOptions, ModelWorker, type ModelWorkerOptions } from './model-worker.ts'

export interface ReadFigures {
  /** Of what was asked for, from the first list to the last ReadFinish. */
  readonly megabytesPerSecond: number
  /** Bytes read from the device over bytes delivered. */
  readonly amplification: number
  readonly readsPerGigabyte: number
  readonly jumps: number
  readonly seconds: number
  /** The last consumer's time over the median one's. */
  readonly lastOverMedian: number
  readonly deliveredBytes: number
}

export interface WriteFigures {
  readonly megabytesPerSecond: number
  readonly writesPerGigabyte: number
  readonly jumps: number
}

export interface ReadOrder {
  /** Consumers that read at the same time: one such group after the other. */
  readonly atOnce: number
}

export async function writeAll(worker: ModelWorker, shape: DataShape): Promise<WriteFigures> {
  const before = worker.counts
  const startMs = worker.nowMs
  await worker.write(shape)
  const after = worker.counts
  const bytes = totalBytes(shape)
  return {
    megabytesPerSecond: bytes / 1e3 / (worker.nowMs - startMs),
    writesPerGigabyte: (after.writes - before.writes) / (bytes / 1e9),
    jumps: after.jumps - before.jumps,
  }
}

/** Reads all of the data set once. */
export async function readAll(
  worker: ModelWorker,
  shape: DataShape,
  { atOnce }: ReadOrder,
): Promise<ReadFigures> {
  const before = worker.counts
  const startMs = worker.nowMs
  const durations: number[] = []
  let deliveredBytes = 0
  for (let first = 0; first < shape.consumers; first += atOnce) {
    const consumers = range(first, Math.min(first + atOnce, shape.consumers))
    const group = await readGroup(worker, shape, { consumers })
    deliveredBytes += sumOfDelivered(group)
    // Of the group that was slowest in this, and there are ten at most.
    durations.push(lastOverMedian(group))
  }
  return figures(worker, {
    before,
    startMs,
    deliveredBytes,
    lastOverMedian: Math.max(...durations),
  })
}

export interface Group {
  readonly consumers: readonly number[]
  /** Of the consumer with this number. */
  readonly optionsOf?: (subpartition: number) => ConsumerOptions
  /** For whom the run waits; for all unless given. */
  readonly awaited?: (subpartition: number) => boolean
}

/** Starts all of them at one instant and waits for those that are awaited. */
export async function readGroup(
  worker: ModelWorker,
  shape: DataShape,
  { consumers, optionsOf, awaited = () => true }: Group,
): Promise<ModelConsumer[]> {
  let left = consumers.filter(awaited).length
  const started = consumers.map((subpartition) =>
    worker.startConsumer(shape, subpartition, {
      ...optionsOf?.(subpartition),
      onFinished: () => {
        if (awaited(subpartition)) left -= 1
      },
    }),
  )
  await worker.until(() => left === 0)
  return started
}

export function figures(
  worker: ModelWorker,
  run: {
    readonly before: ModelWorker['counts']
    readonly startMs: number
    readonly deliveredBytes: number
    readonly lastOverMedian: number
  },
): ReadFigures {
  const after = worker.counts
  const { before, deliveredBytes } = run
  const ms = worker.nowMs - run.startMs
  return {
    megabytesPerSecond: deliveredBytes / 1e3 / ms,
    amplification: (after.readBytes - before.readBytes) / deliveredBytes,
    readsPerGigabyte: (after.reads - before.reads) / (deliveredBytes / 1e9),
    jumps: after.jumps - before.jumps,
    seconds: ms / 1000,
    lastOverMedian: run.lastOverMedian,
    deliveredBytes,
  }
}

export function durationsMs(consumers: readonly ModelConsumer[]): number[] {
  return consumers
    .map(({ finishedMs = Infinity, startedMs }) => finishedMs - startedMs)
    .sort((a, b) => a - b)
}

export function lastOverMedian(consumers: readonly ModelConsumer[]): number {
  const sorted = durationsMs(consumers)
  return (sorted.at(-1) ?? 0) / (sorted[Math.floor(sorted.length / 2)] ?? 1)
}

export function sumOfDelivered(consumers: readonly ModelConsumer[]): number {
  return consumers.reduce((sum, { deliveredBytes }) => sum + deliveredBytes, 0)
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

/** A worker on which the data set was written. */
export async function writtenWorker(
  options: ModelWorkerOptions,
  shape: DataShape,
): Promise<{ readonly worker: ModelWorker; readonly write: WriteFigures }> {
  const worker = await ModelWorker.start(options)
  const write = await writeAll(worker, shape)
  return { worker, write }
}
