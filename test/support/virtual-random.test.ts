import { expect, test } from 'vitest'
import { VirtualRandom } from './virtual-random.ts'

test('the same seed gives the same numbers, another seed others', () => {
  const draw = (seed: number | string) => {
    const random = new VirtualRandom(seed)
    return [random.float(), random.integer(1000), random.bytes(8).toString('hex')].join()
  }
  expect(draw(1)).toBe(draw(1))
  expect(draw('1')).toBe(draw(1))
  expect(draw(1)).not.toBe(draw(2))
})

test('numbers stay in their bounds and spread over them', () => {
  const random = new VirtualRandom(3)
  const buckets = Array.from({ length: 10 }, () => 0)
  for (let count = 0; count < 10_000; count += 1) {
    const value = random.float()
    expect(value >= 0 && value < 1).toBe(true)
    const bucket = Math.floor(value * 10)
    buckets[bucket] = (buckets[bucket] ?? 0) + 1
  }
  for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(200)
  const between = Array.from({ length: 100 }, () => random.between(5, 6))
  expect(Math.min(...between)).toBeGreaterThanOrEqual(5)
  expect(Math.max(...between)).toBeLessThan(6)
})

test('a fork is independent of how much the other draws afterwards', () => {
  const a = new VirtualRandom(1)
  const b = new VirtualRandom(1)
  const forkA = a.fork('disk')
  const forkB = b.fork('disk')
  a.bytes(100)
  expect(forkA.float()).toBe(forkB.float())
  expect(a.fork('disk').float()).not.toBe(a.fork('network').float())
})
