import { expect, test } from 'vitest'
import { chooseWorker } from '../../cli/named-worker.ts'
import type { WorkerSummary } from '../../client/manager/api-workers.ts'
import { toldWorker } from '../support/http-answers.ts'

const workers = ['worker-1a', 'worker-1b', 'worker-2'].map(
  (workerId, index) => toldWorker({ workerId, host: `h${index}` }) as WorkerSummary,
)

test('a worker is meant by its id, the beginning of it, or its address', () => {
  expect(chooseWorker(workers, 'worker-1b').workerId).toBe('worker-1b')
  expect(chooseWorker(workers, 'worker-2').workerId).toBe('worker-2')
  expect(chooseWorker(workers, 'worker-1a').workerId).toBe('worker-1a')
  expect(chooseWorker(workers, 'h2:9710').workerId).toBe('worker-2')
})

test('an id that is the beginning of another is that worker', () => {
  const more = [...workers, toldWorker({ workerId: 'worker-22' }) as WorkerSummary]
  expect(chooseWorker(more, 'worker-2').workerId).toBe('worker-2')
})

test('several or none are refused, with what there is', () => {
  expect(() => chooseWorker(workers, 'worker-1')).toThrow(/2 workers: worker-1a, worker-1b/)
  expect(() => chooseWorker(workers, 'workre-2')).toThrow(/no worker workre-2.*worker-2/)
})

test('an unknown worker is a failure as an unknown job is, a name that is too short a wrong call', () => {
  // The command ends with 2 for INVALID_ARGUMENT alone.
  const refused = (name: string) => expect(() => chooseWorker(workers, name))
  refused('worker-3').toThrow(expect.objectContaining({ code: 'NO_WORKER' }))
  refused('worker-1').toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})
