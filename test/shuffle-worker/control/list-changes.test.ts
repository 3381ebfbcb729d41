import { expect, test } from 'vitest'
import {
  ListChanges,
  noAllocation,
  reportGroups,
  type ReportRow,
} from '../../../shuffle-worker/control/list-changes.ts'
import { jobId, key } from '../../support/cluster-state.ts'

const row = (index: number, change: Partial<ReportRow> = {}): ReportRow => ({
  key: { jobId, ...key(index) },
  allocation: noAllocation,
  state: 'committed',
  byteCount: 5,
  ...change,
})

test('a delta is the same until it is answered, and the next one follows', () => {
  const changes = new ListChanges()
  expect(changes.next()).toBeUndefined()
  changes.add(row(0))
  const first = changes.next()
  changes.add(row(1))
  expect(changes.next()).toBe(first)
  expect(first).toMatchObject({ sequence: 1, groups: [{ partitionIndices: [0] }] })
  if (first !== undefined) changes.answered(first)
  expect(changes.sequence).toBe(1)
  expect(changes.next()).toMatchObject({ sequence: 2, groups: [{ partitionIndices: [1] }] })
})

test('of a partition the last state counts', () => {
  const changes = new ListChanges()
  changes.add(row(0))
  changes.add(row(0, { state: 'released' }))
  expect(changes.next()?.groups).toMatchObject([{ state: 'released', partitionIndices: [0] }])
})

test('deltas are bounded', () => {
  const changes = new ListChanges()
  for (let index = 0; index < 6000; index++) changes.add(row(index))
  const sizes: number[] = []
  for (let delta = changes.next(); delta !== undefined; delta = changes.next()) {
    sizes.push(delta.groups.reduce((sum, group) => sum + group.attempts.length, 0))
    changes.answered(delta)
  }
  expect(sizes).toEqual([2500, 2500, 1000])
})

test('a full list makes changes needless, but for what was lost', () => {
  const changes = new ListChanges()
  changes.add(row(0, { state: 'lost', cause: 'disk-failed' }))
  changes.next()
  changes.add(row(1))
  changes.add(row(2, { state: 'lost', cause: 'data-corrupt' }))
  changes.restart()
  expect(changes.next()).toMatchObject({
    sequence: 1,
    groups: [
      { state: 'lost', cause: 'disk-failed', partitionIndices: [0] },
      { state: 'lost', cause: 'data-corrupt', partitionIndices: [2] },
    ],
  })
})

test('groups hold what rows have in common, and no more than a page takes', () => {
  const allocation = { managerEpoch: 1, jobEpoch: 2, sequence: 3 }
  const rows = Array.from({ length: 5000 }, (_, index) => row(index, { allocation }))
  const groups = reportGroups([...rows, row(9000)])
  expect(groups.map((group) => [group.managerEpoch, group.attempts.length])).toEqual([
    [1, 4000],
    [1, 1000],
    [0, 1],
  ])
})
