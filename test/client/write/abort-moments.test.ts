// A result partition that is aborted between two steps of what follows one of its waits: moments that
// lie within one turn of the event loop.

import { expect, test } from 'vitest'
import { isShuffleError } from '../../../client/common/errors.ts'
import type { Waiter, WaitOptions } from '../../../client/common/waiters.ts'
import type { ResultPartition } from '../../../client/write/result-partition.ts'
import { ClientBench, descriptorOf } from '../support/client-bench.ts'

const waitsMax = 12
const stepsMax = 3

async function produce(partition: ResultPartition): Promise<string> {
  try {
    for (let index = 0; index < 2500; index += 1) {
      const wait = partition.emitRecord(Buffer.alloc(20, index), index % 4)
      if (wait !== undefined) await wait
    }
    await partition.finish()
    return 'committed'
  } catch (error) {
    return isShuffleError(error) ? error.code : String(error)
  }
}

/** Calls `act` so many steps after the wait of that number has ended. */
function afterWait(
  bench: ClientBench,
  moment: { readonly wait: number; readonly steps: number },
  act: () => void,
): void {
  const register = bench.waiters as { wait: <T>(options: WaitOptions) => Waiter<T> }
  const wait = register.wait.bind(bench.waiters)
  let count = 0
  register.wait = <T>(options: WaitOptions) => {
    const waiter = wait<T>(options)
    if (options.name !== 'room in the sort buffer' || count++ !== moment.wait) return waiter
    let step: Promise<unknown> = waiter.promise
    for (let each = 0; each < moment.steps; each += 1) step = step.then(() => undefined)
    step.then(act, act)
    return waiter
  }
}

test('a result partition that is aborted in the moment when it has room again is cancelled', async () => {
  for (let wait = 0; wait < waitsMax; wait += 1) {
    for (let steps = 0; steps < stepsMax; steps += 1) {
      const bench = new ClientBench()
      const worker = await bench.startWorker('w1')
      const partition = bench.createPartition(descriptorOf(worker, { codec: 'none' }))
      afterWait(bench, { wait, steps }, () => {
        partition.abort(new Error('the task is cancelled'))
      })
      expect(['CANCELLED', 'committed']).toContain(await bench.drive(produce(partition)))
      await bench.atRest([worker])
    }
  }
})
