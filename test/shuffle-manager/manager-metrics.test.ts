import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import {
  declareClusterMetrics,
  declareManagerMetrics,
} from '../../shuffle-manager/manager-metrics.ts'
import { ClusterState, jobId, key, reported } from '../support/cluster-state.ts'

test('the cluster is told in figures with closed label sets', async () => {
  const state = new ClusterState()
  const registry = new Registry()
  declareManagerMetrics(registry).errors.inc({ code: 'BUSY' })
  declareClusterMetrics(registry, state.cluster)
  const worker = state.register('w1', [reported([key(0), key(1)], 'committed')])
  state.registerJob()
  worker.state = 'suspect'
  state.cluster.jobs.addTimeInState(state.cluster.job(jobId), { credit: 1500 })
  const text = await registry.metrics()
  expect(text).toContain('sluice_manager_workers{state="suspect"} 1')
  expect(text).toContain('sluice_manager_workers{state="alive"} 0')
  expect(text).toContain('sluice_manager_partitions{state="committed"} 2')
  expect(text).toContain('sluice_manager_committed_bytes 200')
  expect(text).toContain('sluice_manager_errors_total{code="BUSY"} 1')
  expect(text).toContain('sluice_manager_time_in_state_seconds{state="credit"} 1.5')
  expect(text).toContain('sluice_manager_ready 1')
  expect(text).not.toMatch(/job-?id|partition_?id|worker_?id/i)
})

test('every name says its unit, and has help', () => {
  const registry = new Registry()
  declareManagerMetrics(registry)
  declareClusterMetrics(registry, new ClusterState().cluster)
  for (const metric of registry.getMetricsAsArray()) {
    expect(metric.name).toMatch(/^sluice_manager_/)
    expect(metric.help).not.toBe('')
  }
})
