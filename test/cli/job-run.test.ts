import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { LocalCluster } from '../../cli/local-cluster.ts'
import { runJob, type JobRunSettings } from '../../cli/job-run.ts'
import { prepareSort } from '../../runtime/jobs/sort-job.ts'
import { commandContext } from '../support/command-context.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true })
})
const input = path.join(directory, 'input')
const output = path.join(directory, 'output')
const job = { inputs: [input], output, maps: 2, reduces: 2, taskMemoryBytes: 4 << 20 }
const settings: JobRunSettings = {
  manager: undefined,
  clusterId: 'test',
  tokenFile: undefined,
  workers: 1,
  taskProcesses: 1,
  slots: 2,
  verbose: false,
}

describe('a job from the command line', { timeout: 180_000 }, () => {
  test('runs on a cluster of its own, and says what the workers took and gave', async () => {
    writeFileSync(input, 'c\na\nb\n')
    const context = commandContext()
    const run = await runJob(() => prepareSort(job), settings, context)
    expect(readFileSync(output, 'utf8')).toBe('a\nb\nc\n')
    expect(run).toMatchObject({
      inputBytes: 6,
      output: { outputBytes: 6 },
      summary: { producerAttempts: 2 },
    })
    const { takenUncompressedBytes, takenBytes, givenBytes } = run.counters!
    expect(takenUncompressedBytes).toBeGreaterThanOrEqual(6)
    expect(givenBytes).toBeGreaterThanOrEqual(takenBytes)
    expect(run.summary.taskProcesses).toHaveLength(1)
    expect(context.noted.join('')).toMatch(/map 2 of 2/)
  })

  test('whose output is in place is done, though its cluster is gone by then', async () => {
    writeFileSync(input, 'b\na\n')
    const cluster = await LocalCluster.start({
      workerCount: 1,
      ports: 'free',
      clusterId: settings.clusterId,
      signal: new AbortController().signal,
    })
    const prepare = async () => {
      const prepared = await prepareSort(job)
      const commit = async (results: Parameters<typeof prepared.commit>[0]) => {
        const committed = await prepared.commit(results)
        await cluster.stop()
        return committed
      }
      return { ...prepared, commit }
    }
    const onCluster = { ...settings, manager: cluster.managerUrl }
    const run = await runJob(prepare, onCluster, commandContext())
    expect(readFileSync(output, 'utf8')).toBe('a\nb\n')
    expect(run.counters).toBeUndefined()
  })

  test('that was told to end before it began starts nothing', async () => {
    const context = commandContext({ signal: AbortSignal.abort(new Error('ended')) })
    await expect(runJob(() => prepareSort(job), settings, context)).rejects.toThrow('ended')
  })

  test('that is told to end does not wait for a manager that is silent', async () => {
    const controller = new AbortController()
    const silent = createServer(() => {
      controller.abort('SIGINT')
    })
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const context = commandContext({ signal: controller.signal })
    const elsewhere = { ...settings, manager: `http://127.0.0.1:${port}` }
    await expect(runJob(() => prepareSort(job), elsewhere, context)).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    silent.closeAllConnections()
    silent.close()
  })

  test('that fails leaves neither a partial output nor processes', async () => {
    writeFileSync(input, 'x'.repeat(5 << 20))
    await expect(runJob(() => prepareSort(job), settings, commandContext())).rejects.toThrow(
      'line 1',
    )
    expect(readdirSync(directory).sort()).toEqual(['input', 'output'])
  })
})
