import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  askWorker,
  lagCheck,
  managerChecks,
  processChecks,
  workerChecks,
} from '../../../cli/doctor/cluster-checks.ts'
import type { ProcessDescription } from '../../../client/manager/api-settings.ts'
import type { WorkerSummary } from '../../../client/manager/api-workers.ts'
import { healthyDirectory } from '../../support/cluster-state.ts'
import { HttpAnswers, toldWorker } from '../../support/http-answers.ts'

const cluster = {
  clusterId: 'c',
  managerEpoch: 1,
  version: '0.1.0',
  upMs: 1,
  isReady: true,
  reason: '',
  wallMs: 1,
  workerCounts: { alive: 2 },
  jobCount: 0,
  partitionCount: 0,
  byteCount: 0,
  freeBytes: 0,
}

const description = (change: Partial<ProcessDescription> = {}): ProcessDescription => ({
  role: 'worker',
  version: '0.1.0',
  wallMs: Date.now(),
  logLevel: 'info',
  facts: { threadPool: 13, openFilesMax: '1048576' },
  options: [
    ['data-directories', '/a'],
    ['connections-max', '4096'],
    ['open-writes-max', '8192'],
    ['open-files-max', '4096'],
  ].map(([name = '', value = '']) => ({ name, value, source: 'default', isReloadable: false })),
  problems: [],
  ...change,
})

const worker = (change: Readonly<Record<string, unknown>> = {}) =>
  toldWorker({ directories: [healthyDirectory], ...change }) as WorkerSummary

const bad = (checks: readonly { readonly status: string; readonly what: string }[]) =>
  checks.filter(({ status }) => status !== 'ok').map(({ status, what }) => `${status} ${what}`)

describe('the doctor, of a cluster', () => {
  test('has nothing to say against one that is well', () => {
    const asked = { process: description(), clockOffMs: 100 }
    expect(bad(managerChecks(cluster))).toEqual([])
    expect(bad(workerChecks(worker(), '0.1.0'))).toEqual([])
    expect(bad(processChecks('w', asked))).toEqual([])
    expect(bad([lagCheck('w', { eventLoopLagMs: 20 })])).toEqual([])
  })

  test('sees a manager that allocates nothing, and that no worker is alive', () => {
    const checks = managerChecks({ ...cluster, isReady: false, reason: 'waits', workerCounts: {} })
    expect(bad(checks)).toEqual(['failure manager', 'failure workers'])
  })

  test.each([
    [{ state: 'lost' }, 'failure worker worker-1'],
    [{ state: 'suspect' }, 'warning worker worker-1'],
    [{ service: { state: 'excluded', reason: 'r', number: 1 } }, 'warning worker worker-1'],
    [{ version: '0.0.9' }, 'warning worker worker-1'],
    [
      { directories: [{ ...healthyDirectory, health: 'failed' }] },
      'failure worker worker-1: disk /data',
    ],
    [
      { directories: [{ ...healthyDirectory, isFull: true }] },
      'failure worker worker-1: disk /data',
    ],
    [
      { directories: [{ ...healthyDirectory, freeBytes: 1 }] },
      'warning worker worker-1: disk /data',
    ],
  ])('sees of a worker %j', (change, expected) => {
    expect(bad(workerChecks(worker(change), '0.1.0'))).toEqual([expected])
  })

  test.each([
    [{ process: description(), clockOffMs: -5000 }, 'warning w: clock'],
    [{ process: description(), clockOffMs: 100_000 }, 'failure w: clock'],
    [
      {
        process: description({ facts: { threadPool: 4, openFilesMax: '1048576' } }),
        clockOffMs: 0,
      },
      'failure w: thread pool',
    ],
    [
      { process: description({ facts: { threadPool: 13, openFilesMax: '1024' } }), clockOffMs: 0 },
      'failure w: open files',
    ],
    [
      {
        process: description({
          problems: [{ wallMs: 1, level: 'error', message: 'a disk', fields: {} }],
        }),
        clockOffMs: 0,
      },
      'warning w: log',
    ],
  ])('sees of a process, %#', (asked, expected) => {
    expect(bad(processChecks('w', asked))).toEqual([expected])
  })

  test('asks the worker itself, on both ports', async () => {
    const http = await HttpAnswers.start({
      'GET /v1/process': description(),
      'GET /v1/status': { eventLoopLagMs: 3000 },
    })
    const data = createServer()
    await new Promise<void>((resolve) => data.listen(0, '127.0.0.1', resolve))
    const { port } = data.address() as AddressInfo
    const here = { host: '127.0.0.1', port, httpPort: http.port }
    expect(bad(await askWorker(worker(here), undefined))).toEqual([
      'warning worker worker-1: event loop',
    ])
    data.close()
    http.close()
    expect(bad(await askWorker(worker(here), undefined))).toEqual([
      'failure worker worker-1: HTTP port',
      'failure worker worker-1: data port',
    ])
  })
})
