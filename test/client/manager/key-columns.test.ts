import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeAttempts,
  decodeKeys,
  encodeAttempts,
  encodeKeys,
  groupBy,
  inPages,
} from '../../../client/manager/key-columns.ts'
import { key } from '../../support/cluster-state.ts'

test('keys come back as they were, data set by data set', () => {
  const arbitraryKey = fc
    .tuple(fc.nat({ max: 3 }), fc.nat(), fc.stringMatching(/^[!-~]{1,30}$/))
    .map(([dataSet, index, attempt]) => key(index, attempt, `d${String(dataSet)}`))
  fc.assert(
    fc.property(fc.array(arbitraryKey), (keys) => {
      const sorted = groupBy(keys, (one) => one.dataSetId).flatMap((group) => group.items)
      expect(decodeKeys(encodeKeys(keys))).toEqual(sorted)
    }),
  )
})

test('what attempts have in common is said once', () => {
  const columns = encodeAttempts([key(1, 'graph_vertex_1_0'), key(12, 'graph_vertex_12_0')])
  expect(columns).toEqual({
    attemptPrefix: 'graph_vertex_1',
    partitionIndices: [1, 12],
    attempts: ['_0', '2_0'],
  })
  expect(encodeAttempts([])).toEqual({ attemptPrefix: '', partitionIndices: [], attempts: [] })
})

test('columns of different lengths and attempts that are no ids are refused', () => {
  const visit = () => undefined
  const columns = { attemptPrefix: 'a', partitionIndices: [1, 2], attempts: ['x', 'y'] }
  expect(() => {
    decodeAttempts({ ...columns, attempts: ['x'] }, [], visit)
  }).toThrow(/equally long/)
  expect(() => {
    decodeAttempts(columns, [[1]], visit)
  }).toThrow(/equally long, got 2 and 1/)
  expect(() => {
    decodeAttempts({ ...columns, attempts: ['x', ' '] }, [], visit)
  }).toThrow(/attempt id/)
  expect(() => {
    decodeAttempts(
      { attemptPrefix: 'a'.repeat(150), partitionIndices: [1], attempts: ['b'.repeat(150)] },
      [],
      visit,
    )
  }).toThrow(/attempt id/)
})

test('pages hold at most so many', () => {
  expect(inPages([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
  expect(inPages([], 2)).toEqual([])
})
