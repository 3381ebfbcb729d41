import { expect, test } from 'vitest'
import { anyOf, least, type Candidate } from '../../../shuffle-manager/placement/candidate.ts'
import { VirtualRandom } from '../../support/virtual-random.ts'

function candidate(number: number, dataSetCount: number): Candidate {
  const worker = { number, host: 'h', directories: [], partitionCount: 0, pendingBytes: 0 }
  return { worker, dataSetCount, partitionCount: 0, freeBytes: 0 }
}

test('least gives all that are least, in order', () => {
  const all = [candidate(0, 2), candidate(1, 1), candidate(2, 3), candidate(3, 1)]
  const found = least(all, (one) => one.dataSetCount)
  expect(found.map((one) => one.worker.number)).toEqual([1, 3])
  expect(least([], () => 1)).toEqual([])
})

test('any of many is each of them in the long run, and of none a failure', () => {
  const random = new VirtualRandom(1)
  const all = [candidate(0, 0), candidate(1, 0), candidate(2, 0)]
  const seen = new Set(Array.from({ length: 100 }, () => anyOf(all, random).worker.number))
  expect(seen.size).toBe(3)
  expect(() => anyOf([], random)).toThrow(/there is a candidate/)
})
