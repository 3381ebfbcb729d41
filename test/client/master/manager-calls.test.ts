import { expect, test } from 'vitest'
import { ControlPlane, jobA } from '../../support/control-plane.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

test('thousands of partitions are allocated, listed anew after a restart, and released', async () => {
  const world = new VirtualWorld({ seed: 11, network: { chunking: 'whole' } })
  const plane = await ControlPlane.start(world, 3)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const count = 9_000
  const descriptors = await world.drive(
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        master.allocate(jobA, { dataSet: 'd', index, attempt: `a_${String(index)}`, total: count }),
      ),
    ),
  )
  for (const descriptor of descriptors) plane.commit(descriptor)
  await world.clock.advance(3000)
  plane.killManager()
  await world.clock.advance(1000)
  await plane.startManager()
  await world.clock.advance(20_000)
  expect(master.lost).toEqual([])
  const [first] = descriptors
  if (first === undefined) throw new Error('nothing allocated')
  const description = await world.drive(plane.watcher.describeDataSet(jobA, first.key.dataSetId))
  expect(description.partitions).toHaveLength(count)
  expect(description.partitions.every((one) => one.state === 'committed')).toBe(true)
  for (const descriptor of descriptors) master.release(descriptor)
  await world.clock.advance(20_000)
  expect(plane.workers.map((worker) => worker.store.partitions.size)).toEqual([0, 0, 0])
})
