import { describe, expect, it } from 'vitest'
import type { ShuffleCase } from '../../bench/shuffle-case.ts'
import {
  broadcastCase,
  openChannelsCase,
  optionCases,
  shuffleReadCases,
  skewCase,
  subpartitionConsumers,
  togetherCase,
  wholePartitions,
  writeCases,
} from '../../bench/workloads.ts'

const full = { bytes: 1_500_000_000, isQuick: false }

const allCases: readonly ShuffleCase[] = [
  ...writeCases(full),
  ...shuffleReadCases(full),
  togetherCase(full),
  broadcastCase(full),
  skewCase(full),
  ...optionCases(full),
]

describe('workloads', () => {
  it('each moves about the bytes of a round', () => {
    for (const shape of [...writeCases(full), ...shuffleReadCases(full)]) {
      const bytes = shape.partitions * shape.subpartitions * shape.sliceBytes
      expect(bytes).toBeGreaterThan(full.bytes * 0.6)
      expect(bytes).toBeLessThan(full.bytes * 1.1)
    }
  })

  it('every way of reading reads each slice once', () => {
    for (const shape of allCases) {
      for (const way of shape.reads) {
        const slices = new Set<string>()
        let count = 0
        for (const { first, last, inputs } of way.groups.flat()) {
          for (const input of inputs) {
            for (let subpartition = first; subpartition <= last; subpartition += 1) {
              slices.add(`${String(input)} ${String(subpartition)}`)
              count += 1
            }
          }
        }
        expect(count).toBe(shape.partitions * shape.subpartitions)
        expect(slices.size).toBe(count)
      }
    }
  })

  it('one consumer of a skewed shuffle has nine tenths of it', () => {
    const shape = skewCase(full)
    const rest = shape.sliceBytes * (shape.subpartitions - 1)
    const first = shape.firstSliceBytes ?? 0
    expect(first / (first + rest)).toBeCloseTo(0.9, 2)
    expect((first + rest) * shape.partitions).toBeGreaterThan(full.bytes * 0.95)
  })

  it('broadcast data is delivered once for each consumer', () => {
    const { sliceBytes, partitions, subpartitions, isBroadcast } = broadcastCase(full)
    expect(isBroadcast).toBe(true)
    expect(sliceBytes * partitions * subpartitions).toBeGreaterThan(full.bytes * 0.95)
  })

  it('a thousand channels list a thousand partitions', () => {
    const shape = openChannelsCase(full)
    const listed = shape.reads[0]?.groups[0]?.map(({ inputs }) => inputs.length)
    expect(listed).toHaveLength(1000)
    expect(new Set(listed)).toEqual(new Set([1000]))
  })

  it('a tenth at a time is ten groups of neighbours', () => {
    const way = shuffleReadCases(full)[0]?.reads[1]
    expect(way?.groups).toHaveLength(10)
    expect(way?.groups[1]?.map(({ first }) => first).slice(0, 2)).toEqual([50, 51])
  })

  it('consumers of whole partitions share them out', () => {
    const consumers = wholePartitions(5, { subpartitions: 3, consumers: 2 })
    expect(consumers.map(({ inputs }) => inputs)).toEqual([
      [0, 2, 4],
      [1, 3],
    ])
    expect(subpartitionConsumers(2, 3)[1]).toEqual({ first: 1, last: 1, inputs: [0, 1, 2] })
  })
})
