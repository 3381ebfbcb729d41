import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAttemptId, parseDataSetId } from '../../../client/common/ids.ts'
import { PartitionTable } from '../../../shuffle-manager/cluster/partition-table.ts'
import { jobId } from '../../support/cluster-state.ts'

const allocation = { managerEpoch: 5, jobEpoch: 6, sequence: 7 }

function emptyTable(): PartitionTable {
  return new PartitionTable({ number: 3, jobId, dataSetId: parseDataSetId('d') })
}

function insert(table: PartitionTable, partitionIndex: number, attempt: string): number {
  return table.insert({
    partitionIndex,
    attemptId: parseAttemptId(attempt),
    worker: 1,
    state: 'allocated',
    allocation,
  })
}

test('a row gives back what was put in', () => {
  const table = emptyTable()
  const row = insert(table, 12, 'abc_12_0')
  table.setFlag(row, 'claimed', true)
  table.setBytes(row, 2 ** 40)
  table.setState(row, 'committed')
  expect(table.find(12, parseAttemptId('abc_12_0'))).toBe(row)
  expect(table.index(row)).toBe(12)
  expect(table.attemptId(row)).toBe('abc_12_0')
  expect(table.allocation(row)).toEqual(allocation)
  expect(table.bytes(row)).toBe(2 ** 40)
  expect(table.state(row)).toBe('committed')
  expect(table.has(row, 'claimed')).toBe(true)
  expect(table.has(row, 'held')).toBe(false)
  expect(table.ref(row)).toBe(3 * 2 ** 32 + row)
})

test('a row that is taken again starts clean', () => {
  const table = emptyTable()
  const first = insert(table, 0, 'a')
  table.setFlag(first, 'commitTold', true)
  table.setBytes(first, 9)
  table.remove(first)
  const second = insert(table, 1, 'b')
  expect(second).toBe(first)
  expect(table.has(second, 'commitTold')).toBe(false)
  expect(table.bytes(second)).toBe(0)
  expect(table.find(0, parseAttemptId('a'))).toBe(-1)
})

test('an index beyond the array is found through the map', () => {
  const table = emptyTable()
  const far = insert(table, 4_000_000_000, 'far')
  expect(table.find(4_000_000_000, parseAttemptId('far'))).toBe(far)
  table.remove(far)
  expect(table.find(4_000_000_000, parseAttemptId('far'))).toBe(-1)
})

test('attempts with many prefixes are all kept apart', () => {
  const table = emptyTable()
  const attempts = Array.from(
    { length: 600 },
    (_, index) => `p${'x'.repeat(index % 7)}${String(index)}q_${String(index)}`,
  )
  const rows = attempts.map((attempt) => insert(table, 0, attempt))
  expect(rows.map((row) => table.attemptId(row))).toEqual(attempts)
  expect(attempts.map((attempt) => table.find(0, parseAttemptId(attempt)))).toEqual(rows)
})

test('counts of workers follow the rows', () => {
  const table = emptyTable()
  const row = insert(table, 0, 'a')
  insert(table, 1, 'b')
  table.setWorker(row, 2)
  expect([...table.countsByWorker]).toEqual([
    [1, 1],
    [2, 1],
  ])
  table.remove(row)
  expect([...table.countsByWorker]).toEqual([[1, 1]])
})

test('any sequence of inserts and removals leaves what a plain map would', () => {
  const operation = fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 4 }), fc.boolean())
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const table = emptyTable()
      const model = new Map<string, number>()
      for (const [index, attempt, isInsert] of operations) {
        const attemptId = parseAttemptId(`t_${String(attempt)}`)
        const name = `${String(index)} ${attemptId}`
        const row = table.find(index, attemptId)
        expect(row).toBe(model.get(name) ?? -1)
        if (isInsert && row < 0) model.set(name, insert(table, index, attemptId))
        if (!isInsert && row >= 0) {
          table.remove(row)
          model.delete(name)
        }
      }
      expect(table.rowCount).toBe(model.size)
      expect([...table.rows()].sort()).toEqual([...model.values()].sort())
    }),
  )
})
