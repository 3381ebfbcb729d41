import { expect, test } from 'vitest'
import { sleep } from '../../../client/common/clock.ts'
import { ShuffleError } from '../../../client/common/errors.ts'
import { silentLogger } from '../../../client/common/log.ts'
import { managerApi } from '../../../client/manager/api.ts'
import type { ManagerClient } from '../../../client/manager/manager-client.ts'
import type { ServiceState } from '../../../client/manager/schemas.ts'
import { WorkerControl } from '../../../shuffle-worker/control/worker-control.ts'
import { jobId, key } from '../../support/cluster-state.ts'
import { ControlPlane, FakeStore } from '../../support/control-plane.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const none = { params: {}, query: {}, body: undefined }
const allocation = { managerEpoch: 1, jobEpoch: 1, sequence: 1 }

async function ready() {
  const world = new VirtualWorld({ seed: 31 })
  const plane = await ControlPlane.start(world, 1)
  const worker = plane.worker('w1')
  const { control } = worker
  if (control === undefined) throw new Error('the worker does not run')
  const told = async () => {
    const { workers } = await world.drive(plane.watcher.call(managerApi.listWorkers, none))
    const [one] = workers
    if (one === undefined) throw new Error('no worker')
    return one
  }
  return { world, plane, worker, control, told }
}

test('a worker registers with its list, and says where it is', async () => {
  const { plane, worker, world, told } = await ready()
  worker.kill()
  worker.store.commit({ jobId, ...key(0) }, allocation)
  worker.start()
  await world.clock.advance(1000)
  expect(plane.worker('w1').control?.isRegistered).toBe(true)
  expect(await told()).toMatchObject({
    state: 'alive',
    host: 'w1',
    port: 9710,
    partitionCount: 1,
    byteCount: 1000,
    directories: [{ freeBytes: 50 * 1024 ** 3 }],
  })
})

test('a change is told at once, not with the next heartbeat', async () => {
  const { world, worker, told } = await ready()
  await world.clock.advance(1000)
  worker.store.commit({ jobId, ...key(0) }, allocation)
  await world.clock.advance(50)
  expect(await told()).toMatchObject({ partitionCount: 1 })
})

test('a disk that is full or sick is told at once', async () => {
  const { world, worker, told } = await ready()
  worker.store.changeDirectory({ isFull: true })
  await world.clock.advance(50)
  expect((await told()).directories).toMatchObject([{ isFull: true }])
  worker.store.changeDirectory({ health: 'suspect' })
  await world.clock.advance(50)
  expect((await told()).directories).toMatchObject([{ health: 'suspect' }])
})

test('a worker with nothing to say is heard of in every interval', async () => {
  const { world, told } = await ready()
  for (let count = 0; count < 20; count++) {
    await world.clock.advance(3700)
    expect((await told()).silentMs).toBeLessThanOrEqual(5100)
  }
})

test('a thousand commits in one moment are few calls', async () => {
  const { world, plane, worker, told } = await ready()
  const { events } = await world.drive(plane.watcher.call(managerApi.listEvents, none))
  for (let index = 0; index < 1000; index++) {
    worker.store.commit({ jobId, ...key(index) }, allocation)
  }
  await world.clock.advance(200)
  expect(await told()).toMatchObject({ partitionCount: 1000 })
  const later = await world.drive(plane.watcher.call(managerApi.listEvents, none))
  expect(later.events).toEqual(events)
})

test('draining is told at once', async () => {
  const { world, control, told } = await ready()
  control.drain()
  await world.clock.advance(50)
  expect(await told()).toMatchObject({ isDraining: true })
})

test('a stop says whether the data comes back', async () => {
  const first = await ready()
  await first.world.drive(first.control.stop('for-a-while'))
  await first.world.drive(first.control.stop('for-a-while'))
  expect(await first.told()).toMatchObject({ state: 'suspect' })
  const second = await ready()
  await second.world.drive(second.control.stop('for-ever'))
  expect(await second.told()).toMatchObject({ state: 'lost' })
})

test('a stop while the manager is away takes no longer than its last words may', async () => {
  const { world, plane, control } = await ready()
  plane.killManager()
  const startMs = world.clock.nowMs()
  await world.drive(control.stop('for-a-while'))
  expect(world.clock.nowMs() - startMs).toBeLessThan(2000)
})

test('after a restart of the manager the whole list is told again', async () => {
  const { world, plane, worker, told } = await ready()
  worker.store.commit({ jobId, ...key(0) }, allocation)
  await world.clock.advance(1000)
  plane.killManager()
  worker.store.commit({ jobId, ...key(1) }, allocation)
  await world.clock.advance(10_000)
  await plane.startManager()
  await world.clock.advance(10_000)
  expect(await told()).toMatchObject({ state: 'alive', partitionCount: 2 })
})

test('that the manager is away or refuses is told once, and that it answers again', async () => {
  const world = new VirtualWorld({ seed: 31 })
  const lines: string[] = []
  let failure: ShuffleError | undefined
  const managerClient = {
    call: (route: { readonly path: string }) => {
      if (failure !== undefined) return Promise.reject(failure)
      if (route.path === managerApi.registerWorker.path) {
        return Promise.resolve({ heartbeatIntervalMs: 5000 })
      }
      const answer = { resync: false, commandsNumber: 0, commands: [] }
      return sleep(world.clock, 1000).then(() => answer)
    },
  } as unknown as ManagerClient
  const control = new WorkerControl({
    world: world.start('w1'),
    logger: {
      ...silentLogger,
      info: (_fields, message) => lines.push(message),
      warn: (_fields, message) => lines.push(message),
    },
    managerClient,
    store: new FakeStore('w1'),
    host: 'w1',
    dataPort: 9710,
    version: 'test',
  })
  const phases = [
    new ShuffleError('NO_MANAGER', 'away'),
    undefined,
    new ShuffleError('UNAUTHENTICATED', 'another token'),
    new ShuffleError('NO_MANAGER', 'away'),
    undefined,
  ]
  control.start()
  await world.clock.advance(10_000)
  for (failure of phases) await world.clock.advance(30_000)
  await world.drive(control.stop('for-a-while'))
  const [away, refused] = [/does not answer; it is asked/, /refuses the worker/]
  const [registered, again] = [/^registered/, /answers again/]
  expect(lines).toEqual(
    [registered, away, again, refused, away, registered].map(
      (text) => expect.stringMatching(text) as unknown,
    ),
  )
})

test('each registration says that it comes after the one before', async () => {
  const world = new VirtualWorld({ seed: 31 })
  const numbers: unknown[] = []
  const managerClient = {
    call: (route: { readonly path: string }, { body }: { readonly body: { number?: number } }) => {
      if (route.path === managerApi.registerWorker.path) {
        numbers.push(body.number)
        return Promise.resolve({ heartbeatIntervalMs: 5000 })
      }
      if (numbers.length < 3) return Promise.resolve({ resync: true })
      return Promise.reject(new ShuffleError('NO_MANAGER', 'the test has seen enough'))
    },
  } as unknown as ManagerClient
  const control = new WorkerControl({
    world: world.start('w1'),
    logger: silentLogger,
    managerClient,
    store: new FakeStore('w1'),
    host: 'w1',
    dataPort: 9710,
    version: 'test',
  })
  control.start()
  await world.clock.runUntil(() => numbers.length >= 3)
  await control.stop('for-a-while')
  expect(numbers).toEqual([1, 2, 3])
})

test('a worker that starts before its manager registers when it comes', async () => {
  const world = new VirtualWorld({ seed: 32 })
  const plane = new ControlPlane(world)
  const worker = plane.addWorker('w1')
  await world.clock.advance(60_000)
  expect(worker.control?.isRegistered).toBe(false)
  await plane.startManager()
  await world.clock.advance(10_000)
  expect(worker.control?.isRegistered).toBe(true)
})

test('a worker that is told to drain keeps it, and says so when it has', async () => {
  const { world, plane, worker, told } = await ready()
  await ask(plane, world, { state: 'draining', reason: 'a new disk' })
  expect(await told()).toMatchObject({ service: { state: 'draining' } })
  await world.clock.advance(100)
  expect(worker.store.service).toMatchObject({ state: 'draining', reason: 'a new disk' })
  expect(await told()).toMatchObject({ isServiceTold: true, isDraining: true })
})

test('what people want of a worker outlives the manager, the worker and both', async () => {
  const { world, plane, worker, told } = await ready()
  await ask(plane, world, { state: 'excluded', reason: 'noisy' })
  await world.clock.advance(100)
  for (const which of ['manager', 'worker', 'both']) {
    if (which !== 'worker') plane.killManager()
    if (which !== 'manager') worker.kill()
    await world.clock.advance(1000)
    if (which !== 'worker') await plane.startManager()
    if (which !== 'manager') worker.start()
    await world.clock.advance(10_000)
    expect(await told(), which).toMatchObject({
      state: 'alive',
      service: { state: 'excluded', reason: 'noisy' },
      isServiceTold: true,
    })
  }
  // A manager that never asked for anything can end what another had asked for.
  await ask(plane, world, { state: 'serving' })
  await world.clock.advance(100)
  expect(worker.store.service.state).toBe('serving')
})

test('a worker that is away is told when it comes', async () => {
  const { world, plane, worker, told } = await ready()
  worker.kill()
  await world.clock.advance(1000)
  await ask(plane, world, { state: 'excluded' })
  expect(await told()).toMatchObject({ isServiceTold: false, service: { state: 'excluded' } })
  worker.start()
  await world.clock.advance(2000)
  expect(worker.store.service.state).toBe('excluded')
  expect(await told()).toMatchObject({ isServiceTold: true })
})

async function ask(
  plane: ControlPlane,
  world: VirtualWorld,
  body: { readonly state: ServiceState; readonly reason?: string },
): Promise<void> {
  const params = { workerId: 'w1' }
  await world.drive(plane.watcher.call(managerApi.setWorkerService, { params, query: {}, body }))
}
