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

/** All consumers at once, until so much has been delivered to them together. */
export async function readSome(
  worker: ModelWorker,
  shape: DataShape,
  bytes: number,
): Promise<ReadFigures> {
  const before = worker.counts
  const startMs = worker.nowMs
  const consumers = range(0, shape.consumers).map((subpartition) =>
    worker.startConsumer(shape, subpartition, { onFinished: () => undefined }),
  )
  await worker.until(() => sumOfDelivered(consumers) >= bytes)
  const deliveredBytes = sumOfDelivered(consumers)
  const read = figures(worker, { before, startMs, deliveredBytes, lastOverMedian: 1 })
  for (const consumer of consumers) consumer.close()
  return read
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

/** Reads of one data set while another is written, until the first of the two is done. */
export async function readBesideWrites(
  worker: ModelWorker,
  shapes: { readonly read: DataShape; readonly written: DataShape },
): Promise<{ readonly megabytesPerSecond: number; readonly writtenShare: number }> {
  const startMs = worker.nowMs
  const writtenBefore = worker.writtenBytes
  const progress = worker.startProducers(shapes.written)
  let left = shapes.read.consumers
  const consumers = range(0, shapes.read.consumers).map((subpartition) =>
    worker.startConsumer(shapes.read, subpartition, {
      onFinished: () => {
        left -= 1
      },
    }),
  )
  const isOver = () => left === 0 || progress.committed === shapes.written.producers
  await worker.until(isOver)
  const written = worker.writtenBytes - writtenBefore
  const bytes = sumOfDelivered(consumers) + written
  return {
    megabytesPerSecond: bytes / 1e3 / (worker.nowMs - startMs),
    writtenShare: written / bytes,
  }
}

/** The time of all but each tenth consumer, with those as quick as the others and then slow. */
export async function othersBesideSlow(
  options: ModelWorkerOptions,
  shape: DataShape,
  bytesPerSecond: number,
): Promise<{ readonly withoutMs: number; readonly withMs: number; readonly slowShare: number }> {
  const isSlow = (subpartition: number) => subpartition % 10 === 9
  const timeOfOthers = async (slowBytesPerSecond: number | undefined) => {
    const { worker } = await writtenWorker(options, shape)
    const consumers = await readGroup(worker, shape, {
      consumers: range(0, shape.consumers),
      optionsOf: (subpartition) => ({
        bytesPerSecond: isSlow(subpartition) ? slowBytesPerSecond : undefined,
      }),
      awaited: (subpartition) => !isSlow(subpartition),
    })
    const others = consumers.filter((_, subpartition) => !isSlow(subpartition))
    const slow = consumers.filter((_, subpartition) => isSlow(subpartition))
    worker.close()
    return {
      lastMs: Math.max(...durationsMs(others)),
      slowShare: sumOfDelivered(slow) / slow.length / shape.sliceBytes / shape.producers,
    }
  }
  const without = await timeOfOthers(undefined)
  const withSlow = await timeOfOthers(bytesPerSecond)
  return { withoutMs: without.lastMs, withMs: withSlow.lastMs, slowShare: withSlow.slowShare }
}

export interface Newcomer {
  readonly sliceBytes: number
  /** It arrives so long after the others have begun. */
  readonly afterMs: number
  /** What is written meanwhile, if anything. */
  readonly written?: DataShape
}

/** A job of four by four that arrives while all others read: first bytes after its lists came. */
export async function newcomerUnderLoad(
  worker: ModelWorker,
  shape: DataShape,
  options: Newcomer,
): Promise<{ readonly firstByteMs: number; readonly lastFirstByteMs: number }> {
  const small: DataShape = {
    name: `small-${String(options.sliceBytes)}-${String(options.afterMs)}`,
    producers: 4,
    consumers: 4,
    sliceBytes: options.sliceBytes,
    regions: 1,
  }
  await worker.write(small)
  const busy = range(0, shape.consumers).map((subpartition) =>
    worker.startConsumer(shape, subpartition, { onFinished: () => undefined }),
  )
  if (options.written !== undefined) worker.startProducers(options.written)
  const startMs = worker.nowMs
  await worker.until(() => worker.nowMs >= startMs + options.afterMs)
  let left = small.consumers
  const arrivedMs = worker.nowMs
  const newcomers = range(0, small.consumers).map((subpartition) =>
    worker.startConsumer(small, subpartition, {
      onFinished: () => {
        left -= 1
      },
    }),
  )
  await worker.until(() => left === 0)
  for (const consumer of busy) consumer.close()
  const waits = newcomers.map(({ firstByteMs = Infinity }) => firstByteMs - arrivedMs)
  return { firstByteMs: Math.min(...waits), lastFirstByteMs: Math.max(...waits) }
}
