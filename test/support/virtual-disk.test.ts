import { describe, expect, test } from 'vitest'
import { deferred } from './deferred.ts'
import { describeDisk } from './disk-contract.ts'
import { VirtualWorld } from './virtual-world.ts'

describe('the virtual disk', () => {
  describeDisk(async (use) => {
    const world = new VirtualWorld({ seed: 9 })
    const { disk } = world.main
    await world.drive(disk.makeDirectory('/data'))
    await use({ disk, directory: '/data', drive: (promise) => world.drive(promise) })
    expect(world.disk().openFileCount).toBe(0)
  })
})

async function diskWorld(seed = 1) {
  const world = new VirtualWorld({ seed })
  const process = world.main
  await world.drive(process.disk.makeDirectory('/data'))
  const write = async (name: string, text: string, disk = process.disk) => {
    const file = await disk.open(`/data/${name}`, 'create')
    await file.write([Buffer.from(text)], 0)
    return file
  }
  const text = (name: string) => {
    const content = world.disk().contentOf(`/data/${name}`)
    return content && Buffer.from(content).toString()
  }
  return { world, disk: process.disk, machine: world.disk(), write, text }
}

test('a loss of power drops content and names that were not synced', async () => {
  const { world, disk, machine, write, text } = await diskWorld()
  const synced = await world.drive(write('synced', 'kept'))
  await world.drive(synced.sync())
  await world.drive(disk.syncDirectory('/data'))
  await world.drive(synced.write([Buffer.from(' and lost')], 4))
  await world.drive(write('unnamed', 'x').then((file) => file.sync()))
  await world.drive(disk.rename('/data/synced', '/data/renamed'))
  expect(text('renamed')).toBe('kept and lost')
  const before = await world.drive(disk.bootId())
  machine.crash('drop')
  expect(machine.filesBelow('/data')).toEqual(['/data/synced'])
  expect(text('synced')).toBe('kept')
  expect(await world.drive(disk.bootId())).not.toBe(before)
})

test('a name that was synced with content that was not gives an empty file', async () => {
  const { world, disk, machine, write, text } = await diskWorld()
  await world.drive(write('hollow', 'never synced'))
  await world.drive(disk.syncDirectory('/data'))
  machine.crash('drop')
  expect(text('hollow')).toBe('')
})

test('a crash that keeps everything changes nothing', async () => {
  const { world, machine, write, text } = await diskWorld()
  await world.drive(write('a', 'all of it'))
  machine.crash('keep')
  expect(text('a')).toBe('all of it')
})

test('a crash by chance loses another part with another seed, names in their order', async () => {
  const outcomes = new Set<string>()
  for (let seed = 0; seed < 40; seed += 1) {
    const { world, disk, machine, write, text } = await diskWorld(seed)
    const file = await world.drive(write('log', '12345'))
    await world.drive(file.sync())
    await world.drive(disk.syncDirectory('/data'))
    await world.drive(file.write([Buffer.from('67890')], 5))
    await world.drive(write('first', ''))
    await world.drive(write('second', ''))
    machine.crash('random')
    expect(text('log')).toMatch(/^12345/)
    if (text('second') !== undefined) expect(text('first')).toBeDefined()
    outcomes.add(`${text('log') ?? ''} ${machine.filesBelow('/data').join(' ')}`)
  }
  expect(outcomes.size).toBeGreaterThan(5)
})

test('a call fails with the code that was planned, as often as planned', async () => {
  const { world, machine, write } = await diskWorld()
  const fault = machine.inject({
    fault: { kind: 'error', code: 'EIO' },
    operation: ['write', 'sync'],
    path: '/data/bad',
    after: 1,
    times: 2,
  })
  const file = await world.drive(write('bad', 'first passes'))
  await expect(world.drive(file.sync())).rejects.toMatchObject({ code: 'EIO' })
  await expect(world.drive(file.write([Buffer.from('x')], 0))).rejects.toMatchObject({
    code: 'EIO',
  })
  await world.drive(file.sync())
  await world.drive(write('good', 'other paths pass'))
  expect(fault.hits).toBe(2)
  fault.remove()
})

test('a short write leaves half of its bytes and fails', async () => {
  const { world, machine, write, text } = await diskWorld()
  machine.inject({ fault: { kind: 'short', code: 'ENOSPC' }, operation: 'write' })
  await expect(world.drive(write('half', '0123456789'))).rejects.toMatchObject({ code: 'ENOSPC' })
  expect(text('half')).toBe('01234')
})

test('a call that hangs answers when it is let go, others meanwhile', async () => {
  const { world, machine, write, text } = await diskWorld()
  const file = await world.drive(write('a', ''))
  const fault = machine.inject({ fault: { kind: 'hang' }, operation: 'write', path: /a$/ })
  let isDone = false
  const hanging = file.write([Buffer.from('late')], 0).then(() => {
    isDone = true
  })
  await world.clock.advance(3_600_000)
  await world.drive(write('b', 'others'))
  expect(isDone).toBe(false)
  fault.remove()
  machine.releaseHung()
  await world.drive(hanging)
  expect(text('a')).toBe('late')
})

test('a slow call takes the time that was planned', async () => {
  const { world, machine, write } = await diskWorld()
  const file = await world.drive(write('a', 'x'))
  machine.inject({ fault: { kind: 'slow', delayMs: 5000 }, operation: 'sync' })
  const startMs = world.clock.nowMs()
  await world.drive(file.sync())
  expect(world.clock.nowMs() - startMs).toBeGreaterThanOrEqual(5000)
})

test('a full volume takes what fits, says ENOSPC, and has room again after a removal', async () => {
  const { world, disk, machine, write, text } = await diskWorld()
  machine.setCapacity('/data', 100)
  await world.drive(write('a', 'x'.repeat(90)))
  expect(await world.drive(disk.space('/data'))).toEqual({ totalBytes: 100, freeBytes: 10 })
  await expect(world.drive(write('b', 'y'.repeat(20)))).rejects.toMatchObject({ code: 'ENOSPC' })
  expect(text('b')).toBe('y'.repeat(10))
  await world.drive(disk.unlink('/data/a'))
  await world.drive(write('c', 'z'.repeat(90)))
})

test('flipped bits show to whoever has the file open, and survive a loss of power', async () => {
  const { world, machine, write, text } = await diskWorld()
  const file = await world.drive(write('a', 'abc'))
  await world.drive(file.sync())
  machine.flipBits('/data/a', 1, 1)
  const target = new Uint8Array(3)
  await world.drive(file.read(target, 0))
  expect(Buffer.from(target).toString()).toBe('acc')
  await world.drive(world.main.disk.syncDirectory('/data'))
  machine.crash('drop')
  expect(text('a')).toBe('acc')
})

test('a disk that was replaced has no files, and is used as a new one', async () => {
  const { world, machine, write, text } = await diskWorld()
  await world.drive(write('a', 'abc').then((file) => file.close()))
  machine.wipe()
  expect(machine.filesBelow('/')).toEqual([])
  await world.drive(write('a', 'new').then((file) => file.close()))
  expect(text('a')).toBe('new')
})

test('a close that fails can have lost what was written', async () => {
  const { world, machine, write, text } = await diskWorld()
  machine.inject({ fault: { kind: 'error', code: 'EIO', losesContent: true }, operation: 'close' })
  const file = await world.drive(write('a', '0123456789'))
  await expect(world.drive(file.close())).rejects.toMatchObject({ code: 'EIO' })
  expect(text('a')).toBe('01234')
})

test('memory given back before a write ends shows as wrong bytes', async () => {
  const { world, write, text } = await diskWorld()
  const file = await world.drive(write('a', ''))
  const bytes = Buffer.from('precious')
  const writing = file.write([bytes], 0)
  bytes.fill('x')
  await world.drive(writing)
  expect(text('a')).toBe('xxxxxxxx')
})

test.each(['before', 'after'] as const)('a process can die %s any numbered call', async (when) => {
  const steps: string[] = []
  for (let step = 1; ; step += 1) {
    const { world, disk, machine, write, text } = await diskWorld()
    const reached = deferred<string>()
    machine.stopAt(machine.operationCount + step, when, () => {
      world.main.kill()
      reached.resolve('died')
    })
    const work = async () => {
      const file = await write('a.partial', 'content')
      await file.close()
      await disk.rename('/data/a.partial', '/data/a')
      return 'finished'
    }
    const outcome = await world.drive(Promise.race([work(), reached.promise]))
    const names = machine.filesBelow('/data').map((path) => path.slice('/data/'.length))
    steps.push(`${names.join()}:${text(names[0] ?? '') ?? ''}`)
    expect(machine.openFileCount).toBe(0)
    if (outcome === 'finished') break
  }
  const early = [':', 'a.partial:', 'a.partial:content', 'a.partial:content', 'a:content']
  const late = ['a.partial:', 'a.partial:content', 'a.partial:content', 'a:content', 'a:content']
  expect(steps).toEqual(when === 'before' ? early : late)
})

test('a killed process holds no lock, no file, and its calls under way are not answered', async () => {
  const { world, machine, disk, write } = await diskWorld()
  await world.drive(disk.lock('/data'))
  const file = await world.drive(write('a', ''))
  let isAnswered = false
  void file.sync().then(() => {
    isAnswered = true
  })
  world.main.kill()
  expect(machine.openFileCount).toBe(0)
  const next = world.start('main')
  expect(await world.drive(next.disk.lock('/data'))).toBeDefined()
  await world.clock.advance(1000)
  expect(isAnswered).toBe(false)
})

test('calls under way together end in another order than they began', async () => {
  const { world, write } = await diskWorld()
  const ended: number[] = []
  const writes = Array.from({ length: 20 }, async (_, index) => {
    await write(String(index), '')
    ended.push(index)
  })
  await world.drive(Promise.all(writes))
  expect(ended).not.toEqual([...ended].sort((a, b) => a - b))
})

test('machines have disks of their own', async () => {
  const { world, write } = await diskWorld()
  await world.drive(write('a', 'mine'))
  const other = world.start('other')
  await expect(world.drive(other.disk.list('/data'))).rejects.toMatchObject({ code: 'ENOENT' })
})
