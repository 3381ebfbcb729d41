import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { busyTrace } from './busy-trace.ts'
import { deferred } from './deferred.ts'
import { VirtualWorld } from './virtual-world.ts'

test('one seed gives one trace, in this process and in another', async () => {
  const digest = await busyTrace(7)
  expect(await busyTrace(7)).toBe(digest)
  expect(await busyTrace(8)).not.toBe(digest)
  const script = `
    import { busyTrace } from ${JSON.stringify(fileURLToPath(new URL('busy-trace.ts', import.meta.url)))}
    console.log(await busyTrace(7))`
  const other = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  expect(other.stderr).toBe('')
  expect(other.stdout.trim()).toBe(digest)
})

test('nothing of a killed process runs any more: timers, answers of threads, sleeps', async () => {
  const world = new VirtualWorld()
  const victim = world.start('host')
  const heard: string[] = []
  victim.clock.setTimer(10, () => heard.push('timer'))
  victim.clock.setImmediate(() => heard.push('immediate'))
  void victim.compute.compress(Buffer.from('x')).then(() => heard.push('compute'))
  void victim.disk.makeDirectory('/late').then(() => heard.push('disk'))
  victim.kill()
  victim.kill()
  await world.clock.advance(1000)
  expect(heard).toEqual([])
  expect(world.clock.timerCount).toBe(0)
})

test('a machine keeps its files when its process is killed, for the next one there', async () => {
  const world = new VirtualWorld()
  const first = world.start('host')
  const file = await world.drive(first.disk.open('/kept', 'create'))
  await world.drive(file.write([Buffer.from('data')], 0))
  first.kill()
  const second = world.start('host')
  expect(await world.drive(second.disk.list('/'))).toEqual(['kept'])
  expect(await world.drive(second.disk.bootId())).toBe('boot-1')
})

test('own names of a machine lead to itself', async () => {
  const world = new VirtualWorld()
  const process = world.start('host')
  const accepted = deferred<string>()
  await world.drive(
    process.network.listen({ host: '0.0.0.0', port: 5 }, (connection) => {
      accepted.resolve(connection.remote.host)
    }),
  )
  await world.drive(process.network.connect({ host: '127.0.0.1', port: 5, timeoutMs: 1000 }))
  expect(await world.drive(accepted.promise)).toBe('host')
  const foreign = process.network.listen({ host: 'elsewhere', port: 5 }, () => undefined)
  await expect(world.drive(foreign)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' })
})

test('a world without a seed given has one all the same', () => {
  expect(new VirtualWorld().seed).toBe(1)
  expect(new VirtualWorld({ seed: 'a name' }).random.float()).toBe(
    new VirtualWorld({ seed: 'a name' }).random.float(),
  )
})
