// The manager's metrics, all in one place. Label sets are closed: states, codes, names of calls.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { errorTable } from '../client/common/errors.ts'
import { rowStates } from './cluster/partition-table.ts'
import type { Cluster } from './cluster/cluster.ts'
import type { WorkerRecord } from './cluster/worker-registry.ts'

export interface ManagerMetrics {
  readonly requests: Counter<'call' | 'status'>
  readonly requestSeconds: Histogram<'call'>
  readonly errors: Counter<'code'>
  readonly clientReports: Counter<'code'>
  readonly requestBytes: Counter
  readonly answerBytes: Counter
  readonly allocations: Counter
  readonly releases: Counter
  readonly lagSeconds: Gauge
}

export function declareManagerMetrics(registry: Registry): ManagerMetrics {
  const registers = [registry]
  return {
    requests: new Counter({
      name: 'sluice_manager_http_requests_total',
      help: 'HTTP calls answered, by call and status.',
      labelNames: ['call', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'sluice_manager_http_request_seconds',
      help: 'Time from a call to its answer; heartbeats wait on purpose.',
      labelNames: ['call'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    errors: countByCode(registry, {
      name: 'sluice_manager_errors_total',
      help: 'Calls answered with an error, by code.',
    }),
    clientReports: countByCode(registry, {
      name: 'sluice_manager_client_reports_total',
      help: 'Failed reads and writes that task processes reported, by code.',
    }),
    requestBytes: new Counter({
      name: 'sluice_manager_http_request_bytes_total',
      help: 'Bytes of request bodies.',
      registers,
    }),
    answerBytes: new Counter({
      name: 'sluice_manager_http_answer_bytes_total',
      help: 'Bytes of answer bodies.',
      registers,
    }),
    allocations: new Counter({
      name: 'sluice_manager_allocations_total',
      help: 'Partitions in answered allocations.',
      registers,
    }),
    releases: new Counter({
      name: 'sluice_manager_releases_total',
      help: 'Partitions released by calls.',
      registers,
    }),
    lagSeconds: new Gauge({
      name: 'sluice_manager_event_loop_lag_seconds',
      help: 'How late the last regular timer ran.',
      registers,
    }),
  }
}

/** A counter with a series for every code: an alert sees it rise from 0, not begin at 1. */
function countByCode(
  registry: Registry,
  facts: { readonly name: string; readonly help: string },
): Counter<'code'> {
  const counter = new Counter({ ...facts, labelNames: ['code'] as const, registers: [registry] })
  for (const code of Object.keys(errorTable)) counter.inc({ code }, 0)
  return counter
}

/** Figures that are read from the cluster when they are asked for. */
export function declareClusterMetrics(registry: Registry, cluster: Cluster): void {
  const gauge = (name: string, help: string, value: () => number) => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value())
      },
    })
  }
  gauge('sluice_manager_epoch', 'Epoch of the manager.', () => cluster.managerEpoch)
  gauge('sluice_manager_ready', 'Whether the manager allocates.', () =>
    cluster.unreadyReason === undefined ? 1 : 0,
  )
  gauge('sluice_manager_jobs', 'Jobs.', () => cluster.jobs.size)
  gauge('sluice_manager_long_polls', 'Answers that wait for something to say.', () => {
    return cluster.polls.waitingCount
  })
  gauge('sluice_manager_committed_bytes', 'Bytes of committed partitions.', () =>
    sum([...cluster.jobs.all()].map((job) => job.committedBytes)),
  )
  gauge('sluice_manager_pending_bytes', 'Bytes expected of partitions not committed yet.', () =>
    sum([...cluster.jobs.all()].map((job) => job.pendingBytes)),
  )
  gauge('sluice_manager_resident_memory_bytes', 'Resident memory of the process.', () => {
    return process.memoryUsage.rss()
  })
  declareStates(registry, cluster)
}

function declareStates(registry: Registry, cluster: Cluster): void {
  new Gauge({
    name: 'sluice_manager_partitions',
    help: 'Partitions by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of rowStates) {
        this.set({ state }, sum([...cluster.jobs.all()].map((job) => job.counts[state])))
      }
    },
  })
  new Gauge({
    name: 'sluice_manager_time_in_state_seconds',
    help: 'Time that channels and tasks of all jobs spent in each state, as workers and clients told.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, ms] of cluster.jobs.timeInStateMs) this.set({ state }, ms / 1000)
    },
  })
  new Gauge({
    name: 'sluice_manager_workers',
    help: 'Workers by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of ['expected', 'registering', 'alive', 'suspect', 'lost'] as const) {
        this.set({ state }, cluster.workers.all().filter((one) => one.state === state).length)
      }
    },
  })
  new Gauge({
    name: 'sluice_manager_workers_out_of_service',
    help: 'Workers that people have excluded or told to drain.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of ['excluded', 'draining'] as const) {
        const isOut = (one: WorkerRecord) => one.wantedService.state === state
        this.set({ state }, cluster.workers.all().filter(isOut).length)
      }
    },
  })
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
