import { afterEach, beforeEach, expect, test } from 'vitest'
import { askProcess, callProcess, namedProcesses, workerProcess } from '../../cli/process-calls.ts'
import { clientOf } from '../../cli/manager-command.ts'
import type { WorkerSummary } from '../../client/manager/api-workers.ts'
import { HttpAnswers, toldWorker } from '../support/http-answers.ts'

let http: HttpAnswers
beforeEach(async () => {
  http = await HttpAnswers.start({
    'GET /v1/workers': {
      workers: [
        toldWorker({ workerId: 'one', host: '127.0.0.1', httpPort: 1 }),
        toldWorker({ workerId: 'two', host: '::1', httpPort: 2 }),
        toldWorker({ workerId: 'gone', state: 'lost' }),
      ],
    },
  })
})
afterEach(() => {
  http.close()
})

test('processes are named as all, manager, workers, or one worker', async () => {
  const client = clientOf({ manager: http.url, clusterId: 'c' }, undefined)
  const names = async (target: string) =>
    (await namedProcesses(client, http.url, target)).map(({ name }) => name)
  expect(await names('all')).toEqual(['manager', 'one', 'two'])
  expect(await names('workers')).toEqual(['one', 'two'])
  expect(await names('manager')).toEqual(['manager'])
  expect(await names('tw')).toEqual(['two'])
  await expect(names('three')).rejects.toThrow(/no worker three/)
  await client.close()
})

test('a worker has the address that it told', () => {
  expect(workerProcess(toldWorker({ host: '::1', httpPort: 2 }) as WorkerSummary).url).toBe(
    'http://[::1]:2',
  )
  expect(workerProcess(toldWorker() as WorkerSummary).url).toBeUndefined()
})

test('an answer is its JSON, an error is thrown with its code and whose it is', async () => {
  const process = { name: 'worker-1', url: http.url }
  http.answers['GET /x'] = { a: 1 }
  expect(await callProcess(process, { method: 'GET', path: '/x' }, undefined)).toEqual({ a: 1 })
  http.answers['GET /x'] = { error: { code: 'BUSY', message: 'not now' } }
  await expect(
    callProcess(process, { method: 'GET', path: '/x' }, undefined),
  ).rejects.toMatchObject({ code: 'BUSY', message: 'worker-1: not now' })
  for (const other of ['no JSON', 'null', '[]', '"text"']) {
    http.answers['GET /x'] = other
    await expect(callProcess(process, { method: 'GET', path: '/x' }, undefined)).rejects.toThrow(
      /worker-1: status 200/,
    )
  }
})

test('who does not answer, or has no port, is named with the reason', async () => {
  const call = { method: 'GET', path: '/x' } as const
  await expect(
    askProcess({ name: 'w', url: 'http://127.0.0.1:9' }, call, undefined),
  ).rejects.toMatchObject({ code: 'WORKER_UNREACHABLE' })
  await expect(askProcess({ name: 'w', url: undefined }, call, undefined)).rejects.toThrow(
    /told no HTTP port/,
  )
})

test('an answer without end is given up', async () => {
  http.answers['GET /x'] = 'x'.repeat(17 * 1024 * 1024)
  await expect(
    askProcess({ name: 'w', url: http.url }, { method: 'GET', path: '/x' }, undefined),
  ).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
})
