import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  jobsCommand,
  partitionsCommand,
  releaseCommand,
  statusCommand,
  workersCommand,
} from '../../cli/cluster-commands.ts'
import type { Command } from '../../cli/command.ts'
import { commandContext } from '../support/command-context.ts'

/** What the manager of a test answers, by method and path. */
const answers: Record<string, unknown> = {
  'GET /v1/cluster': {
    clusterId: 'sluice',
    managerEpoch: 5,
    version: '0.1.0',
    upMs: 61_000,
    isReady: false,
    reason: 'settling',
    wallMs: 1,
    workerCounts: { alive: 2, lost: 0 },
    jobCount: 1,
    partitionCount: 3,
    byteCount: 2048,
    freeBytes: 1024 ** 3,
  },
  'GET /v1/jobs': {
    jobs: [
      {
        jobId: 'job-1',
        jobEpoch: 1,
        state: 'registered',
        dataSetCount: 1,
        partitionCount: 3,
        committedCount: 2,
        lostCount: 1,
        releasingCount: 0,
        byteCount: 1536,
        silentMs: 1500,
        releaseInMs: 598_500,
        timeInStateMs: {},
      },
    ],
  },
  'GET /v1/workers': {
    workers: [
      {
        workerId: 'worker-1',
        workerEpoch: 1,
        host: 'w.example',
        port: 9710,
        version: '0.1.0',
        state: 'alive',
        isDraining: true,
        service: { state: 'draining', reason: 'new disk', number: 1 },
        isServiceTold: true,
        openWrites: 0,
        partitionCount: 3,
        byteCount: 10,
        silentMs: 0,
        directories: [
          { freeBytes: 1024, fileSystem: 'one' },
          { freeBytes: 1024 },
          // On the first one's file system, whose space is there once.
          { freeBytes: 1024, fileSystem: 'one' },
        ],
      },
    ],
  },
  'GET /v1/jobs/job-1/partitions': { partitions: [partition(0)], next: '1' },
  'GET /v1/jobs/job-1/partitions?after=1': { partitions: [partition(1)] },
  'DELETE /v1/jobs/job-1': { releasedCount: 3 },
}

function partition(partitionIndex: number) {
  return {
    dataSetId: 'd',
    partitionIndex,
    attemptId: 'attempt-1',
    workerId: 'worker-1',
    state: 'committed',
    isClaimed: true,
    byteCount: 10,
  }
}

let server: Server
let manager = ''
let asked: string[] = []
beforeEach(async () => {
  asked = []
  server = createServer((request, response) => {
    const call = `${request.method ?? ''} ${request.url ?? ''}`
    asked.push(call)
    const isRefused = request.headers.authorization === 'Bearer wrong'
    const answer = isRefused
      ? { error: { code: 'UNAUTHENTICATED', message: 'wrong token', fields: {} } }
      : answers[call]
    response.writeHead(isRefused ? 401 : 200, {
      'content-type': 'application/json',
      'sluice-manager-epoch': '1',
    })
    response.end(JSON.stringify(answer ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  manager = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

async function run(command: Command, ...argv: string[]): Promise<string> {
  const context = commandContext({ readFile: () => 'wrong' })
  expect(await command.run(['--manager', manager, ...argv], context)).toBe(0)
  return context.printed.join('')
}

describe('for people', () => {
  test('status says whether the cluster is ready, and why not', async () => {
    const text = await run(statusCommand)
    expect(text).toMatch(/ready +no: settling/)
    expect(text).toMatch(/workers +2 alive\n/)
  })

  test('jobs have the age of their last heartbeat, bytes, and when they will be released', async () => {
    expect(await run(jobsCommand)).toMatch(
      /job-1 +registered +3 +2 +1 +1\.5 KiB +1\.5 s ago +9m 58s/,
    )
  })

  test('workers have their address, state and free space', async () => {
    expect(await run(workersCommand)).toMatch(
      /worker-1 +w\.example:9710 +alive, draining \(new disk\) +3 +10 B +2\.0 KiB/,
    )
  })

  test('partitions are gathered from all pages', async () => {
    const lines = (await run(partitionsCommand, 'job-1')).trim().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[2]).toMatch(/d +1 +attempt-1 +committed +10 B +worker-1/)
  })

  test('a job is released', async () => {
    expect(await run(releaseCommand, 'job-1')).toBe('released job-1\n')
    expect(asked.at(-1)).toBe('DELETE /v1/jobs/job-1')
  })
})

test('each prints JSON for programs', async () => {
  expect(JSON.parse(await run(statusCommand, '--json'))).toEqual(answers['GET /v1/cluster'])
  expect(JSON.parse(await run(jobsCommand, '--json'))).toMatchObject([{ jobId: 'job-1' }])
  expect(JSON.parse(await run(workersCommand, '--json'))).toMatchObject([{ workerId: 'worker-1' }])
  expect(JSON.parse(await run(partitionsCommand, 'job-1', '--json'))).toHaveLength(2)
  expect(JSON.parse(await run(releaseCommand, 'job-1', '--json'))).toEqual({ released: 'job-1' })
})

describe('refused with advice', () => {
  test('a job that the manager does not know is not released', async () => {
    await expect(run(releaseCommand, 'job-2')).rejects.toMatchObject({ code: 'JOB_UNKNOWN' })
    expect(asked).not.toContain('DELETE /v1/jobs/job-2')
  })

  test('a missing argument is named', async () => {
    await expect(run(partitionsCommand)).rejects.toThrow(
      'JOB is missing; usage: sluice partitions JOB',
    )
  })

  test('a wrong token is told with the option that gives it', async () => {
    await expect(run(statusCommand, '--token-file=/t')).rejects.toThrow('--token-file')
  })

  test('a manager that is not there is told with the command that starts one', async () => {
    const context = commandContext()
    const asking = statusCommand.run(['--manager=http://127.0.0.1:1'], context)
    await expect(asking).rejects.toThrow('no manager answers at http://127.0.0.1:1; start one with')
  })
})
