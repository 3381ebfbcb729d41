// All runs of the model with what is asked of them. `npm run bench:model` prints them; test/model and
// test/large hold them, at a smaller number of files and at full size. A smaller number of files
// changes little: what counts is how much lies in one file, and that stays.

import {
  newcomerUnderLoad,
  othersBesideSlow,
  readAll,
  readBesideWrites,
  readSome,
  writtenWorker,
} from './cases.ts'
import type { DataShape } from './data-shape.ts'
import type { ModelWorkerOptions } from './model-worker.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

/** One figure of a run, and the bound that it keeps. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly least?: number
  readonly most?: number
}

export interface Run {
  readonly name: string
  readonly figures: () => Promise<readonly Figure[]>
}

export type Size = 'small' | 'full'

const consumers = 500
const producersOf: Readonly<Record<Size, Readonly<Record<SliceName, number>>>> = {
  small: { '4 KiB': 60, '64 KiB': 20, '1 MiB': 2 },
  full: { '4 KiB': 500, '64 KiB': 500, '1 MiB': 60 },
}
const sliceNames = ['4 KiB', '64 KiB', '1 MiB'] as const
type SliceName = (typeof sliceNames)[number]

const hdd: ModelWorkerOptions = { kind: 'hdd', readPartBytes: 128 * mebibyte }
const ssd: ModelWorkerOptions = { ...hdd, kind: 'ssd' }

/** A file is one region; at 1 MiB its regions are of 64 MiB. */
function shapeOf(slice: SliceName, size: Size, name = 'data'): DataShape {
  const sliceBytes = { '4 KiB': 4 * kibibyte, '64 KiB': 64 * kibibyte, '1 MiB': mebibyte }[slice]
  const regions = slice === '1 MiB' ? 8 : 1
  return { name, producers: producersOf[size][slice], consumers, sliceBytes, regions }
}

const atOnceLeast: Readonly<Record<SliceName, number>> = {
  '4 KiB': 88,
  '64 KiB': 140,
  '1 MiB': 140,
}
const tenthLeast: Readonly<Record<SliceName, number>> = { '4 KiB': 20, '64 KiB': 105, '1 MiB': 120 }

const afterRestartLeast: Readonly<Record<SliceName, number>> = {
  '4 KiB': 65,
  '64 KiB': 135,
  '1 MiB': 140,
}

export function runsOf(size: Size): Run[] {
  return [
    ...sliceNames.flatMap((slice) => [allAtOnce(slice, size), tenthAtATime(slice, size)]),
    ...sliceNames.map((slice) => afterRestart(slice)),
    ...sliceNames.map((slice) => mixed(slice, size)),
    slowConsumers(size),
    ...sliceNames.map((slice) => newcomer(slice, size)),
    arrivalOrder('4 KiB'),
    arrivalOrder('64 KiB'),
    arrivalOrder('1 MiB'),
    ...sliceNames.flatMap((slice) => [withoutHeads(slice, 500), withoutHeads(slice, 50)]),
  ]
}

function allAtOnce(slice: SliceName, size: Size): Run {
  return {
    name: `HDD, ${slice}, all at once`,
    figures: async () => {
      const shape = shapeOf(slice, size)
      const { worker, write } = await writtenWorker(hdd, shape)
      const read = await readAll(worker, shape, { atOnce: consumers })
      worker.close()
      return [
        { name: 'MB/s', value: read.megabytesPerSecond, least: atOnceLeast[slice] },
        { name: 'reads/GB', value: read.readsPerGigabyte, most: 1100 },
        { name: 'bytes read/delivered', value: read.amplification, most: 1.01 },
        { name: 'last/median', value: read.lastOverMedian, most: 1.05 },
        { name: 'jumps', value: read.jumps },
        { name: 'written MB/s', value: write.megabytesPerSecond, least: 140 },
      ]
    },
  }
}

function tenthAtATime(slice: SliceName, size: Size): Run {
  return {
    name: `HDD, ${slice}, a tenth at a time`,
    figures: async () => {
      const shape = shapeOf(slice, size)
      const { worker } = await writtenWorker(hdd, shape)
      const read = await readAll(worker, shape, { atOnce: consumers / 10 })
      worker.close()
      return [
        { name: 'MB/s', value: read.megabytesPerSecond, least: tenthLeast[slice] },
        { name: 'reads/GB', value: read.readsPerGigabyte },
        { name: 'bytes read/delivered', value: read.amplification, most: 1.01 },
        { name: 'last/median', value: read.lastOverMedian, most: 1.05 },
      ]
    },
  }
}

/** No index is in memory any more: each file's is read from its end first. */
function afterRestart(slice: SliceName): Run {
  return {
    name: `HDD, ${slice}, all at once after a restart`,
    figures: async () => {
      const shape = shapeOf(slice, 'small')
      const { worker } = await writtenWorker(hdd, shape)
      const restarted = await worker.restart()
      const read = await readAll(restarted, shape, { atOnce: consumers })
      restarted.close()
      return [
        { name: 'MB/s', value: read.megabytesPerSecond, least: afterRestartLeast[slice] },
        { name: 'jumps per file', value: read.jumps / shape.producers },
      ]
    },
  }
}

function mixed(slice: SliceName, size: Size): Run {
  return {
    name: `HDD, ${slice}, reads beside writes`,
    figures: async () => {
      const read = shapeOf(slice, size)
      const { worker } = await writtenWorker(hdd, read)
      const both = await readBesideWrites(worker, { read, written: shapeOf(slice, size, 'more') })
      worker.close()
      return [
        { name: 'MB/s together', value: both.megabytesPerSecond, least: 120 },
        { name: 'written share', value: both.writtenShare, least: 0.3, most: 0.7 },
      ]
    },
  }
}

function slowConsumers(size: Size): Run {
  return {
    name: 'HDD, 64 KiB, a tenth of the consumers slow',
    figures: async () => {
      const shape = shapeOf('64 KiB', size)
      // A tenth of what each of the others gets.
      const { withMs, withoutMs, slowShare } = await othersBesideSlow(hdd, shape, 30_000)
      return [
        { name: "others' time/without", value: withMs / withoutMs, most: 1.05 },
        { name: 'slow have got', value: slowShare, most: 0.5 },
      ]
    },
  }
}

function newcomer(slice: SliceName, size: Size): Run {
  return {
    name: `HDD, ${slice}, a 4-by-4 job arrives under full load`,
    figures: async () => {
      const shape = shapeOf(slice, size)
      const { worker } = await writtenWorker(hdd, shape)
      const arrival = { sliceBytes: 100, afterMs: 100 }
      const reading = await newcomerUnderLoad(worker, shape, arrival)
      const written = shapeOf(slice, size, 'more')
      const both = await newcomerUnderLoad(worker, shape, { ...arrival, sliceBytes: 101, written })
      worker.close()
      return [
        { name: 'first byte, s', value: reading.firstByteMs / 1000, most: 1 },
        { name: 'of its last consumer, s', value: reading.lastFirstByteMs / 1000, most: 1 },
        { name: 'with writes too, s', value: both.lastFirstByteMs / 1000, most: 1 },
      ]
    },
  }
}

/** Regions as at 1 MiB, two to a file. */
const manyFiles: DataShape = {
  name: 'data',
  producers: 8,
  consumers,
  sliceBytes: mebibyte / 4,
  regions: 2,
}

/** For so many bytes only: its runs are long, and its rate stays the same. */
const arrivalOrderBytes: Readonly<Record<SliceName, number>> = {
  '4 KiB': 10e6,
  '64 KiB': 100e6,
  '1 MiB': 200e6,
}

function arrivalOrder(slice: SliceName): Run {
  return {
    name: `HDD, ${slice}, first come, first served`,
    figures: async () => {
      const shape = slice === '1 MiB' ? manyFiles : shapeOf(slice, 'small')
      const { worker } = await writtenWorker({ ...hdd, isArrivalOrder: true }, shape)
      const read = await readSome(worker, shape, arrivalOrderBytes[slice])
      worker.close()
      return [
        { name: 'MB/s', value: read.megabytesPerSecond },
        { name: 'reads/GB', value: read.readsPerGigabyte },
      ]
    },
  }
}

/** Counts only: what a fast disk costs is its operations. */
function withoutHeads(slice: SliceName, atOnce: number): Run {
  const isAll = atOnce === consumers
  return {
    name: `SSD, ${slice}, ${isAll ? 'all at once' : 'a tenth at a time'}`,
    figures: async () => {
      const shape = shapeOf(slice, 'small')
      const { worker, write } = await writtenWorker(ssd, shape)
      const read = await readAll(worker, shape, { atOnce })
      worker.close()
      return [
        { name: 'reads/GB', value: read.readsPerGigabyte, ...(isAll ? { most: 1100 } : {}) },
        { name: 'bytes read/delivered', value: read.amplification, most: 1.05 },
        { name: 'writes/GB', value: write.writesPerGigabyte, most: 2000 },
      ]
    },
  }
}
