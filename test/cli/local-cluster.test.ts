import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

import { LocalCluster } from '../../cli/local-cluster.ts'

describe('a local cluster', { timeout: 120_000 }, () => {
  test('has a manager and workers on free ports, and leaves nothing when it is stopped', async () => {
    const cluster = await LocalCluster.start({ workerCount: 2, ports: 'free', clusterId: 'test' })
    try {
      const answer = await fetch(`${cluster.managerUrl}/v1/workers`)
      expect(((await answer.json()) as { workers: unknown[] }).workers).toHaveLength(2)
      expect(existsSync(cluster.directory)).toBe(true)
      expect(cluster.starterDirectory.startsWith(cluster.directory)).toBe(true)
    } finally {
      await cluster.stop()
    }
    await cluster.manager.exited
    expect(existsSync(cluster.directory)).toBe(false)
    await cluster.stop()
  })

  test('that can not start a worker leaves nothing', async () => {
    const starting = LocalCluster.start({
      workerCount: 1,
      ports: 'free',
      clusterId: 'test',
      workerArguments: ['--nonsense=1'],
    })
    await expect(starting).rejects.toThrow('unknown option --nonsense')
  })

  test('that is given up while it starts is not waited for', async () => {
    const controller = new AbortController()
    const starting = LocalCluster.start({
      workerCount: 1,
      ports: 'free',
      clusterId: 'test',
      signal: controller.signal,
    })
    controller.abort('SIGINT')
    await expect(starting).rejects.toThrow('was given up while it started')
  })
})
