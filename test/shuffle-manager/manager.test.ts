import { expect, test } from 'vitest'
import { managerApi } from '../../client/manager/api.ts'
import { silentLogger, type Logger } from '../../client/common/log.ts'
import { partitionKeyText } from '../../client/common/ids.ts'
import { ShuffleManager } from '../../shuffle-manager/manager.ts'
import { ControlPlane, jobA } from '../support/control-plane.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

const none = { params: {}, query: {}, body: undefined }

test('partitions are allocated evenly, committed, described, located and released', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const plane = await ControlPlane.start(world, 2)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const descriptors = await world.drive(
    Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        master.allocate(jobA, { dataSet: 'd', index, attempt: `a_${String(index)}_0` }),
      ),
    ),
  )
  const holders = descriptors.map((descriptor) => descriptor.holders[0]?.workerId)
  expect(holders.filter((holder) => holder === 'w1')).toHaveLength(5)
  for (const descriptor of descriptors) plane.commit(descriptor)
  await world.clock.advance(1000)

  const [first] = descriptors
  if (first === undefined) throw new Error('nothing allocated')
  const description = await world.drive(plane.watcher.describeDataSet(jobA, first.key.dataSetId))
  expect(description.partitions).toHaveLength(10)
  expect(description.partitions.every((one) => one.state === 'committed')).toBe(true)
  expect(description.facts?.subpartitionCount).toBe(10)
  const located = await world.drive(
    plane.watcher.locate(
      jobA,
      descriptors.map((one) => one.key),
    ),
  )
  expect(located.map((one) => one?.workerId)).toEqual(holders)

  for (const descriptor of descriptors) master.release(descriptor)
  await world.clock.advance(2000)
  expect(plane.workers.map((worker) => [...worker.store.partitions])).toEqual([[], []])
  const { jobs } = await world.drive(plane.watcher.call(managerApi.listJobs, none))
  expect(jobs).toMatchObject([{ partitionCount: 0, byteCount: 0 }])
})

test('a manager restart between allocation and commit loses nothing', async () => {
  const world = new VirtualWorld({ seed: 2 })
  const plane = await ControlPlane.start(world, 2)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const early = await world.drive(master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }))
  const late = await world.drive(master.allocate(jobA, { dataSet: 'd', index: 1, attempt: 'a1' }))
  plane.killManager()
  plane.commit(early)
  await world.clock.advance(3000)
  await plane.startManager()
  await world.clock.advance(20_000)
  plane.commit(late)
  await world.clock.advance(60_000)
  expect(master.lost).toEqual([])
  const description = await world.drive(plane.watcher.describeDataSet(jobA, late.key.dataSetId))
  expect(description.partitions.map((one) => one.state)).toEqual(['committed', 'committed'])
  const again = await world.drive(master.allocate(jobA, { dataSet: 'd', index: 2, attempt: 'a2' }))
  expect(again.allocation.managerEpoch).toBeGreaterThan(early.allocation.managerEpoch)
})

test('a manager restart between release and its confirmation ends with nothing left', async () => {
  const world = new VirtualWorld({ seed: 3 })
  const plane = await ControlPlane.start(world, 1)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const descriptor = await world.drive(
    master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }),
  )
  plane.commit(descriptor)
  await world.clock.advance(1000)
  const { store } = plane.worker('w1')
  master.release(descriptor)
  await world.clock.runUntil(() => store.releaseCommands.length > 0)
  plane.killManager()
  await world.clock.advance(5000)
  expect([...store.partitions.values()].map((one) => one.state)).toEqual(['released'])
  await plane.startManager()
  await world.clock.advance(20_000)
  expect([...store.partitions]).toEqual([])
  expect(master.lost).toEqual([])
})

test('a worker that is back within the recovery time is as good as before', async () => {
  const world = new VirtualWorld({ seed: 4 })
  const plane = await ControlPlane.start(world, 2)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const descriptor = await world.drive(
    master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }),
  )
  plane.commit(descriptor)
  await world.clock.advance(40_000)
  const worker = plane.worker(descriptor.holders[0]?.workerId)
  worker.kill()
  await world.clock.advance(20_000)
  const { workers } = await world.drive(plane.watcher.call(managerApi.listWorkers, none))
  expect(workers.map((one) => one.state).sort()).toEqual(['alive', 'suspect'])
  worker.start()
  await world.clock.advance(60_000)
  expect(master.lost).toEqual([])
  expect(worker.store.keys()).toEqual([partitionKeyText(descriptor.key)])
})

test('a worker that stays away is lost, once, and its return changes nothing', async () => {
  const world = new VirtualWorld({ seed: 5 })
  const plane = await ControlPlane.start(world, 2)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const descriptor = await world.drive(
    master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }),
  )
  plane.commit(descriptor)
  await world.clock.advance(40_000)
  const worker = plane.worker(descriptor.holders[0]?.workerId)
  worker.kill()
  await world.clock.advance(170_000)
  expect(master.lost).toEqual([])
  await world.clock.advance(20_000)
  expect(master.lost.map((one) => [one.workerId, one.cause])).toEqual([
    [worker.store.workerId, 'the worker is silent'],
  ])
  worker.start()
  await world.clock.advance(60_000)
  expect(master.lost).toHaveLength(1)
  expect([...worker.store.partitions]).toEqual([])
})

test('a worker that comes back without its data is told as lost at once', async () => {
  const world = new VirtualWorld({ seed: 6 })
  const plane = await ControlPlane.start(world, 1)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const descriptor = await world.drive(
    master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }),
  )
  plane.commit(descriptor)
  await world.clock.advance(1000)
  const worker = plane.worker('w1')
  worker.kill()
  worker.store.partitions.clear()
  worker.start()
  await world.clock.advance(2000)
  expect(master.lost.map((one) => one.cause)).toEqual(['the worker came back without it'])
})

test('a partition that nobody claims is asked about, then released', async () => {
  const world = new VirtualWorld({ seed: 7 })
  const plane = await ControlPlane.start(world, 1)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const { store } = plane.worker('w1')
  const kept = await world.drive(master.allocate(jobA, { dataSet: 'd', index: 0, attempt: 'a0' }))
  plane.commit(kept)
  const stranger = { ...kept.key, attemptId: 'zombie' as typeof kept.key.attemptId }
  store.commit(stranger, kept.allocation)
  await world.clock.advance(3000)
  expect(store.keys()).toEqual([partitionKeyText(kept.key)])
  expect([...store.partitions]).toHaveLength(1)
})

test('a manager without a token that listens on more than loopback warns, loudly', async () => {
  const world = new VirtualWorld({ seed: 8 })
  const plane = new ControlPlane(world)
  const warnings: string[] = []
  const logger: Logger = { ...silentLogger, warn: (_fields, message) => warnings.push(message) }
  const start = async (host: string, token: string | undefined) => {
    const process = world.start(`machine-${host}`)
    const options = { ...plane.options, host }
    const started = ShuffleManager.start({ world: process, options, token, logger })
    const manager = await world.drive(started)
    await world.drive(manager.stop())
  }
  await start('127.0.0.1', undefined)
  await start('0.0.0.0', 'secret')
  expect(warnings).toEqual([])
  await start('0.0.0.0', undefined)
  expect(warnings).toEqual([expect.stringMatching(/OPEN TO EVERYONE.*--token-file/)])
})
