import { expect, test } from 'vitest'
import { encodeAttempts, inPages } from '../../../client/manager/key-columns.ts'
import { groupRowsMax, pagesOfGroups } from '../../../client/manager/list-pages.ts'
import { bodyBytesMax, pageEntriesMax } from '../../../client/manager/schemas.ts'
import { key } from '../../support/cluster-state.ts'

const longId = (index: number) => `${String(index).padStart(7, '0')}${'x'.repeat(193)}`

test('nothing is one empty page', () => {
  expect(pagesOfGroups([])).toEqual([[]])
})

test('no page of the longest ids is past the body limit, and none is lost', () => {
  const keys = Array.from({ length: 30_000 }, (_, index) => key(index, longId(index)))
  const groups = inPages(keys, groupRowsMax).map((rows) => ({
    jobId: 'j'.repeat(200),
    dataSetId: 'd'.repeat(200),
    ...encodeAttempts(rows),
    sequences: rows.map(() => Number.MAX_SAFE_INTEGER),
    byteCounts: rows.map(() => Number.MAX_SAFE_INTEGER),
  }))
  const pages = pagesOfGroups(groups)
  expect(pages.flat()).toEqual(groups)
  for (const page of pages) {
    expect(JSON.stringify(page).length).toBeLessThan(bodyBytesMax * 0.9)
    const rows = page.reduce((sum, group) => sum + group.attempts.length, 0)
    expect(rows).toBeLessThanOrEqual(pageEntriesMax)
  }
})

test('groups of one row each are bounded by what their heads take', () => {
  const groups = Array.from({ length: 10_000 }, (_, index) => ({
    jobId: 'j'.repeat(200),
    dataSetId: longId(index),
    ...encodeAttempts([key(index, longId(index))]),
  }))
  for (const page of pagesOfGroups(groups)) {
    expect(JSON.stringify(page).length).toBeLessThan(bodyBytesMax * 0.9)
  }
})

test('ids that JSON writes longer than they are count as they are written', () => {
  const quotes = (index: number) => `${String(index).padStart(7, '0')}${'"'.repeat(193)}`
  const keys = Array.from({ length: 20_000 }, (_, index) => key(index, quotes(index)))
  const ofMany = inPages(keys, groupRowsMax).map((rows) => ({
    jobId: '"'.repeat(200),
    dataSetId: '"'.repeat(200),
    ...encodeAttempts(rows),
    sequences: rows.map(() => Number.MAX_SAFE_INTEGER),
    byteCounts: rows.map(() => Number.MAX_SAFE_INTEGER),
  }))
  const ofOne = keys.map((one, index) => ({
    jobId: '"'.repeat(200),
    dataSetId: quotes(index),
    ...encodeAttempts([one]),
  }))
  for (const groups of [ofMany, ofOne]) {
    const pages = pagesOfGroups<(typeof groups)[number]>(groups)
    const longest = Math.max(...pages.map((page) => JSON.stringify(page).length))
    expect(longest).toBeLessThan(bodyBytesMax * 0.9)
  }
})
