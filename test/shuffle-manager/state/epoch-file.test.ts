import { expect, test } from 'vitest'
import { openEpoch } from '../../../shuffle-manager/state/epoch-file.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

function open(world: VirtualWorld, wallMs: number, process = world.start('machine')) {
  return world.drive(openEpoch({ disk: process.disk, directory: '/state', wallMs }))
}

test('the epoch is the clock, and one more than before where the clock went back', async () => {
  const world = new VirtualWorld()
  const first = await open(world, 1000)
  expect(first.managerEpoch).toBe(1000)
  await world.drive(first.close())
  const second = await open(world, 900)
  expect(second.managerEpoch).toBe(1001)
  await world.drive(second.close())
  expect((await open(world, 5000)).managerEpoch).toBe(5000)
})

test('a file that is gone or damaged is harmless', async () => {
  const world = new VirtualWorld()
  const process = world.start('machine')
  const first = await open(world, 1000, process)
  await world.drive(first.close())
  const file = await world.drive(process.disk.open('/state/manager-epoch', 'update'))
  await world.drive(file.write([Buffer.from('rubbish')], 0))
  await world.drive(file.close())
  expect((await open(world, 2000, process)).managerEpoch).toBe(2000)
})

test('a second manager in the same directory does not start', async () => {
  const world = new VirtualWorld()
  await open(world, 1000)
  await expect(open(world, 1001)).rejects.toThrow(/another shuffle manager runs in \/state/)
})

test('a directory that can not be used is named, with the reason and the option', async () => {
  const world = new VirtualWorld()
  const process = world.start('machine')
  const file = await world.drive(process.disk.open('/state', 'create'))
  await world.drive(file.close())
  await expect(open(world, 1000, process)).rejects.toThrow(
    /state directory \/state can't be used: .*EEXIST.*--state-directory/,
  )
})

test('a manager that was killed leaves the directory to the next one', async () => {
  const world = new VirtualWorld()
  const process = world.start('machine')
  await open(world, 1000, process)
  process.kill()
  expect((await open(world, 1000)).managerEpoch).toBe(1001)
})
