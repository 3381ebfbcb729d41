import { describe, expect, it } from 'vitest'
import { figuresOf, ratiosOf, tableOf } from '../../bench/report.ts'
import { sample, series } from './sample-series.ts'

describe('the report', () => {
  it('a row has rate, reference, ratio and processor time', () => {
    const row = tableOf([series()]).split('\n')[2] ?? ''
    expect(row).toContain('500 / **800** / 1000')
    expect(row).toContain('append: 1000 / **1000** / 1000')
    expect(row).toContain('0.50 / **0.80** / 1.00')
    expect(row).toContain('| 0.30 | 0.50 | 0.00 | 0.01 |')
    expect(row).toContain('3.0 / **3.0** / 3.0')
  })

  it('a ratio is that of one round, not of two medians', () => {
    const samples = [
      sample(1, { references: { append: 2000 } }),
      sample(2, { references: { append: 1000 } }),
    ]
    expect(ratiosOf(series({ samples }), 'append')).toEqual([0.5, 0.5])
  })

  it('a second reference has a row of its own', () => {
    const references = { append: 1000, fio: 2000 }
    const table = tableOf([series({ samples: [sample(1, { references })] })])
    expect(table.split('\n')).toHaveLength(4)
    expect(table).toContain('fio: 2000 / **2000** / 2000')
  })

  it('a workload without bytes has figures and no row', () => {
    const small = series({
      samples: [sample(1, { bytes: 0, references: {}, figures: { 'p99 ms': 12 } })],
    })
    expect(tableOf([small]).split('\n')).toHaveLength(2)
    expect(figuresOf([small])).toBe('- a, write: p99 ms 12.00 / **12.00** / 12.00')
  })

  it('a figure that some rounds lack is that of the others', () => {
    const samples = [
      sample(1, { figures: {} }),
      sample(1, { figures: { 'bytes each': 12 } }),
      sample(1, { figures: { 'bytes each': 13 } }),
      sample(1, { figures: { 'bytes each': 14 } }),
    ]
    expect(figuresOf([series({ samples })])).toContain('bytes each 12.00 / **13.00** / 14.00')
  })

  it('says what the disk really moved', () => {
    const text = figuresOf([series()])
    expect(text).toContain('by the worker: written 1.01 / **1.01** / 1.01')
    expect(text).toContain('writes per GB 1000')
  })
})
