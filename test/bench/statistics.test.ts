import { describe, expect, it } from 'vitest'
import { quantileOf, spreadOf } from '../../bench/statistics.ts'

describe('statistics', () => {
  it('the median of an odd number is the one in the middle', () => {
    expect(spreadOf([5, 1, 3])).toEqual({ min: 1, median: 3, max: 5 })
  })

  it('the median of an even number is the mean of the two in the middle', () => {
    expect(spreadOf([4, 1, 2, 9])).toEqual({ min: 1, median: 3, max: 9 })
  })

  it('nothing has no spread', () => {
    expect(() => spreadOf([])).toThrow('at least one value')
  })

  it('a quantile is the value that its share of all lies below', () => {
    const values = Array.from({ length: 100 }, (_, index) => 99 - index)
    expect(quantileOf(values, 0.5)).toBe(50)
    expect(quantileOf(values, 0.99)).toBe(99)
    expect(quantileOf([7], 1)).toBe(7)
  })
})
