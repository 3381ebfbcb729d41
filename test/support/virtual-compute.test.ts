import { describe, expect, test } from 'vitest'
import { describeCompute } from './compute-contract.ts'
import { VirtualWorld } from './virtual-world.ts'

describe('the virtual compute', () => {
  describeCompute(() => {
    const world = new VirtualWorld({ seed: 2 })
    return { compute: world.main.compute, drive: (promise) => world.drive(promise) }
  })
})

/** In which order twenty compressions end. */
async function order(seed: number): Promise<string> {
  const world = new VirtualWorld({ seed })
  const ended: number[] = []
  const work = Array.from({ length: 20 }, async (_, index) => {
    await world.main.compute.compress(Buffer.alloc(100, index))
    ended.push(index)
  })
  await world.drive(Promise.all(work))
  return ended.join()
}

test('answers come in an order that the seed draws', async () => {
  expect(await order(1)).toBe(await order(1))
  expect(await order(1)).not.toBe(await order(2))
})
