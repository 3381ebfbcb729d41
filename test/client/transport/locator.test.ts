import { describe, expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { parseWorkerId } from '../../../client/common/ids.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'

async function setUp() {
  const bench = new ClientBench()
  const worker = await bench.startWorker('w1')
  const { key } = descriptorOf(worker)
  const hint = { workerId: worker.workerId, host: worker.host, port: worker.port }
  let asked = 0
  const answer = (location: Awaited<ReturnType<typeof bench.locate>>) => {
    bench.locate = () => {
      asked += 1
      return Promise.resolve(location)
    }
  }
  return { bench, worker, key, hint, answer, askedCount: () => asked }
}

describe('the locator', () => {
  test('does not ask the manager while the hint is right', async () => {
    const { bench, worker, key, hint, answer, askedCount } = await setUp()
    answer(undefined)
    await bench.drive(bench.locator.connect(hint, key))
    expect(askedCount()).toBe(0)
    await bench.atRest([worker])
  })

  test('asks for the present address before a failure counts, and remembers it', async () => {
    const { bench, worker, key, hint, answer, askedCount } = await setUp()
    answer(hint)
    const stale = { ...hint, host: 'nowhere' }
    await bench.drive(bench.locator.connect(stale, key))
    expect(askedCount()).toBe(1)
    for (const connection of worker.connections) connection.protocol.destroy()
    await bench.world.clock.advance(100)
    await bench.drive(bench.locator.connect(stale, key))
    expect(askedCount()).toBe(1)
    await bench.atRest([worker])
  })

  test('without the manager the hint is tried too, when the address it remembers is gone', async () => {
    const { bench, worker, key, hint, answer } = await setUp()
    const earlier = await bench.startWorker('earlier', { name: worker.workerId })
    answer({ ...hint, host: 'earlier' })
    await bench.drive(bench.locator.connect({ ...hint, host: 'nowhere' }, key))
    await bench.drive(earlier.stop())
    await bench.world.clock.advance(100)
    bench.locate = () => Promise.reject(new ShuffleError('NO_MANAGER', 'it is away'))
    await bench.drive(bench.locator.connect(hint, key))
    expect(worker.dialCount).toBe(1)
    await bench.atRest([worker])
  })

  test('resolves the name anew at each dial', async () => {
    const { bench, worker, key, hint } = await setUp()
    bench.world.network.setName('worker.example', 'elsewhere')
    const named = { ...hint, host: 'worker.example' }
    await expect(bench.drive(bench.locator.connect(named, key))).rejects.toMatchObject({
      code: 'WORKER_UNREACHABLE',
    })
    bench.world.network.setName('worker.example', 'w1')
    await bench.drive(bench.locator.connect(named, key))
    await bench.atRest([worker])
  })

  test('no answer at any address is WORKER_UNREACHABLE', async () => {
    const { bench, worker, key, hint, answer } = await setUp()
    bench.world.network.refuse('w1')
    for (const location of [undefined, hint, { ...hint, host: 'nowhere' }]) {
      answer(location)
      await expect(bench.drive(bench.locator.connect(hint, key))).rejects.toMatchObject({
        code: 'WORKER_UNREACHABLE',
      })
    }
    await bench.atRest([worker])
  })

  test('another worker at the address, and no other known, is WORKER_CHANGED', async () => {
    const { bench, worker, key, hint, answer } = await setUp()
    const other = { ...hint, workerId: parseWorkerId('gone') }
    answer(undefined)
    await expect(bench.drive(bench.locator.connect(other, key))).rejects.toMatchObject({
      code: 'WORKER_CHANGED',
    })
    answer(other)
    await expect(bench.drive(bench.locator.connect(other, key))).rejects.toMatchObject({
      code: 'WORKER_CHANGED',
    })
    await bench.atRest([worker])
  })

  test('a partition that another worker holds now is WORKER_CHANGED', async () => {
    const { bench, worker, key, hint, answer } = await setUp()
    bench.world.network.refuse('w1')
    answer({ ...hint, workerId: parseWorkerId('new-holder') })
    await expect(bench.drive(bench.locator.connect(hint, key))).rejects.toMatchObject({
      code: 'WORKER_CHANGED',
      fields: { presentWorkerId: 'new-holder' },
    })
    await bench.atRest([worker])
  })

  test('without a manager nothing is decided: WORKER_UNREACHABLE, to be tried again', async () => {
    const { bench, worker, key, hint } = await setUp()
    bench.locate = () => Promise.reject(new ShuffleError('NO_MANAGER', 'away'))
    const other = { ...hint, workerId: parseWorkerId('gone') }
    await expect(bench.drive(bench.locator.connect(other, key))).rejects.toMatchObject({
      code: 'WORKER_UNREACHABLE',
      fields: { managerCode: 'NO_MANAGER' },
    })
    await bench.atRest([worker])
  })

  test('a signal ends the wait for a manager that does not answer', async () => {
    const { bench, worker, key, hint } = await setUp()
    bench.world.network.refuse('w1')
    bench.locate = () => new Promise(() => undefined)
    const abort = new AbortController()
    const connecting = bench.locator.connect(hint, key, abort.signal)
    connecting.catch(() => undefined)
    await bench.world.clock.advance(1000)
    abort.abort(new Error('enough'))
    await expect(connecting).rejects.toThrow('enough')
    await bench.atRest([worker])
  })
})
