import { expect, test } from 'vitest'
import { parseWorkerId } from '../../../client/common/ids.ts'
import { WorkerRegistry } from '../../../shuffle-manager/cluster/worker-registry.ts'

test('a worker keeps its number, and is found by it', () => {
  const registry = new WorkerRegistry({ workersMax: 2 })
  const first = registry.getOrAdd(parseWorkerId('w1'), 0)
  const second = registry.getOrAdd(parseWorkerId('w2'), 0)
  expect(registry.getOrAdd(parseWorkerId('w1'), 9)).toBe(first)
  expect(registry.at(second.number)).toBe(second)
  expect(() => registry.at(7)).toThrow(/number 7/)
})

test('there is a limit to workers', () => {
  const registry = new WorkerRegistry({ workersMax: 1 })
  registry.getOrAdd(parseWorkerId('w1'), 0)
  expect(() => registry.getOrAdd(parseWorkerId('w2'), 0)).toThrow(/workers-max/)
})

test('the version of an address changes only with the address', () => {
  const worker = new WorkerRegistry({ workersMax: 1 }).getOrAdd(parseWorkerId('w1'), 0)
  worker.moveTo('a', 1)
  worker.moveTo('a', 1)
  expect(worker.addressVersion).toBe(1)
  worker.moveTo('b', 1)
  expect(worker.addressVersion).toBe(2)
})
