import { expect, it } from 'vitest'
import { partitionKeyText } from '../../../client/common/ids.ts'
import { KeyMemory } from '../../../shuffle-worker/storage/key-memory.ts'
import { allocationOf, keyOf } from './support/store-fixture.ts'

const text = (index: number) => partitionKeyText(keyOf(index))

it('key memory forgets the oldest first', () => {
  const memory = new KeyMemory({ countMax: 2 })
  for (const index of [1, 2]) memory.remember(text(index), { state: 'released' })
  memory.remember(text(1), { state: 'lost', code: 'DATA_CORRUPT' })
  memory.remember(text(3), { state: 'released' })
  expect(memory.fateOf(text(2))).toBeUndefined()
  expect(memory.fateOf(text(1))).toEqual({ state: 'lost', code: 'DATA_CORRUPT' })
})

it('key memory keeps the highest allocation that was tried', () => {
  const memory = new KeyMemory({ countMax: 2 })
  memory.sawAllocation(text(1), allocationOf(5))
  memory.sawAllocation(text(1), allocationOf(3))
  expect(memory.highestAllocation(text(1))).toEqual(allocationOf(5))
  for (const index of [2, 3]) memory.sawAllocation(text(index), allocationOf(1))
  expect(memory.highestAllocation(text(1))).toBeUndefined()
})

it("key memory tells fate and allocation apart, also in a row that was another key's", () => {
  const memory = new KeyMemory({ countMax: 2 })
  memory.sawAllocation(text(1), allocationOf(5))
  memory.remember(text(2), { state: 'released' })
  expect(memory.fateOf(text(1))).toBeUndefined()
  expect(memory.highestAllocation(text(2))).toBeUndefined()
  memory.remember(text(3), { state: 'released' })
  memory.sawAllocation(text(4), allocationOf(7))
  for (const index of [1, 2]) {
    expect(memory.fateOf(text(index))).toBeUndefined()
    expect(memory.highestAllocation(text(index))).toBeUndefined()
  }
  expect(memory.fateOf(text(3))).toEqual({ state: 'released' })
  expect(memory.highestAllocation(text(3))).toBeUndefined()
  expect(memory.fateOf(text(4))).toBeUndefined()
  expect(memory.highestAllocation(text(4))).toEqual(allocationOf(7))
})
