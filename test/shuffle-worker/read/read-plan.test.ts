import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planReads } from '../../../shuffle-worker/read/read-plan.ts'

const limits = { readBytesMax: 100, gapBytesMax: 10 }

function plan(...slices: readonly [start: number, end: number][]) {
  return planReads(
    slices.map(([start, end]) => ({ start, end })),
    limits,
  ).map(({ start, end, slices: served, isContinuation }) => ({
    start,
    end,
    served: served.length,
    isContinuation,
  }))
}

describe('planReads', () => {
  it('merges neighbours and reads through short gaps', () => {
    expect(plan([0, 20], [20, 40], [50, 60])).toEqual([
      { start: 0, end: 60, served: 3, isContinuation: false },
    ])
  })

  it('does not read a long gap', () => {
    expect(plan([0, 20], [31, 40])).toEqual([
      { start: 0, end: 20, served: 1, isContinuation: false },
      { start: 31, end: 40, served: 1, isContinuation: false },
    ])
  })

  it('cuts what is longer than a read, going on within the slice', () => {
    expect(plan([0, 250], [250, 260])).toEqual([
      { start: 0, end: 100, served: 1, isContinuation: false },
      { start: 100, end: 200, served: 1, isContinuation: true },
      { start: 200, end: 260, served: 2, isContinuation: true },
    ])
  })

  it('gives a read that continues none the room for what is carried', () => {
    const slices = [
      { start: 0, end: 250 },
      { start: 300, end: 430 },
    ]
    const reads = planReads(slices, { ...limits, carryBytesMax: 20 })
    expect(reads.map(({ start, end }) => [start, end])).toEqual([
      [0, 120],
      [120, 220],
      [220, 250],
      [300, 420],
      [420, 430],
    ])
  })

  it('does not read the gap at which a read is cut', () => {
    expect(plan([0, 95], [105, 150])).toEqual([
      { start: 0, end: 95, served: 1, isContinuation: false },
      { start: 105, end: 150, served: 1, isContinuation: false },
    ])
  })

  it('serves equal and overlapping slices with one read', () => {
    expect(plan([0, 50], [0, 50], [10, 20])).toEqual([
      { start: 0, end: 50, served: 3, isContinuation: false },
    ])
  })

  it('plans nothing for nothing', () => {
    expect(plan()).toEqual([])
    expect(plan([5, 5])).toEqual([])
  })

  it('covers every wanted byte once, in order, within its limits', () => {
    const slice = fc
      .tuple(fc.nat(2000), fc.integer({ min: 1, max: 400 }))
      .map(([start, length]) => ({ start, end: start + length }))
    fc.assert(
      fc.property(fc.array(slice, { maxLength: 40 }), (slices) => {
        const reads = planReads(slices, limits)
        let last = 0
        for (const read of reads) {
          expect(read.start).toBeGreaterThanOrEqual(last)
          expect(read.end - read.start).toBeLessThanOrEqual(limits.readBytesMax)
          expect(read.end).toBeGreaterThan(read.start)
          last = read.end
        }
        for (const wanted of slices) {
          const serving = reads.filter((read) => read.slices.includes(wanted))
          const covered = serving.reduce(
            (sum, read) =>
              sum + Math.min(read.end, wanted.end) - Math.max(read.start, wanted.start),
            0,
          )
          expect(covered).toBe(wanted.end - wanted.start)
        }
      }),
    )
  })
})
