import { expect, test } from 'vitest'
import * as api from '../../client/index.ts'
import { shuffleServiceFactory } from '../../client/shuffle-service-factory.ts'
import { loadShuffleServiceFactory } from '../../client/spi.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

test('the package itself is a shuffle service that can be loaded by name', async () => {
  const name = new URL('../../client/index.ts', import.meta.url).href
  expect(await loadShuffleServiceFactory(name)).toBe(shuffleServiceFactory)
  expect(api.shuffleServiceFactory).toBe(shuffleServiceFactory)
})

test('a cluster id that is none is refused when the environment is made', () => {
  const world = new VirtualWorld().main
  expect(() =>
    shuffleServiceFactory.createShuffleEnvironment({
      managerUrl: 'http://manager:9700',
      clusterId: 'not an id',
      world,
    }),
  ).toThrow(/cluster id/)
})

test('master and environment are made without a manager, and closed without one', async () => {
  const world = new VirtualWorld()
  const context = {
    managerUrl: 'http://manager:9700',
    clusterId: 'test-cluster',
    token: 'secret',
    world: world.main,
  }
  const environment = shuffleServiceFactory.createShuffleEnvironment(context)
  const master = shuffleServiceFactory.createShuffleMaster(context)
  await world.drive(master.start())
  await world.drive(Promise.all([environment.close(), master.close()]))
  await world.clock.advance(60_000)
  expect(world.clock.timerCount).toBe(0)
})
