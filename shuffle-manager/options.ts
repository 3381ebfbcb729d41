// The options of the manager, declared once.

import { complaintAboutPatterns } from '../client/common/metric-filter.ts'
import { declareOptions, type OptionValues } from '../client/common/options.ts'
import { placementNames } from './placement/placement.ts'

export const managerOptions = declareOptions(
  'manager',
  {
    clusterId: {
      name: 'cluster-id',
      type: 'string',
      default: 'sluice',
      lengthMax: 200,
      pattern: /^[\x21-\x7e]+$/,
      about: 'Name of the cluster; a peer of another cluster is refused.',
    },
    host: {
      name: 'host',
      type: 'host',
      default: '127.0.0.1',
      about: 'Address that the HTTP port listens on.',
    },
    port: { name: 'port', type: 'port', default: 9700, about: 'HTTP port.' },
    stateDirectory: {
      name: 'state-directory',
      type: 'path',
      default: './sluice-manager',
      about: "Directory for the manager's epoch, all that survives a restart.",
    },
    tokenFile: {
      name: 'token-file',
      type: 'path',
      about: 'File with the secret shared by the cluster; every call but health asks for it.',
    },
    metricsNeedToken: {
      name: 'metrics-need-token',
      type: 'boolean',
      default: false,
      about: 'Whether /metrics asks for the bearer token too.',
    },
    metricsAllow: {
      name: 'metrics-allow',
      type: 'list',
      default: [],
      reloadable: true,
      about:
        'Metrics that /metrics shows, as regular expressions for whole names; all when it is empty.',
    },
    placement: {
      name: 'placement',
      type: 'enum',
      choices: placementNames,
      default: 'round-robin',
      about:
        'How workers are chosen: evenly by data set (round-robin), by fewest partitions (min-number), on the host of the producer (locality), or at random.',
    },
    minFreeBytes: {
      name: 'min-free-space',
      type: 'bytes',
      default: '64mb',
      reloadable: true,
      about: 'A worker with less free space than this is not chosen.',
    },
    expectedWorkers: {
      name: 'expected-workers',
      type: 'integer',
      default: 0,
      max: 10_000,
      about: 'With so many workers registered the settle time ends; 0 when not known.',
    },
    heartbeatIntervalMs: {
      name: 'heartbeat-interval',
      type: 'duration',
      default: '5s',
      min: '50ms',
      max: '1m',
      about: 'Longest time between two heartbeats of a worker or job master.',
    },
    workerSuspectMs: {
      name: 'worker-suspect-after',
      type: 'duration',
      default: '15s',
      reloadable: true,
      about: 'A worker silent for so long gets no new partitions.',
    },
    workerRecoveryMs: {
      name: 'worker-recovery-time',
      type: 'duration',
      default: '3m',
      reloadable: true,
      about: 'A worker not back with its data by then is lost.',
    },
    workerForgetMs: {
      name: 'worker-forget-after',
      type: 'duration',
      default: '1h',
      reloadable: true,
      about:
        'A lost worker of which no job knows anything any more is no longer listed, so long after it was last heard of; one that was out of service at once.',
    },
    graceMs: {
      name: 'start-grace',
      type: 'duration',
      default: '30s',
      about: 'Silence is not judged for so long after the start.',
    },
    settleMs: {
      name: 'settle-time',
      type: 'duration',
      default: '5s',
      about:
        'After the start nothing is allocated for so long, unless all workers that are counted on are back.',
    },
    jobTimeoutMs: {
      name: 'job-timeout',
      type: 'duration',
      default: '10m',
      about: 'A job silent for so long is released.',
    },
    detachMaxMs: {
      name: 'detach-max',
      type: 'duration',
      default: '1d',
      reloadable: true,
      about: 'Longest time for which the data of a detached job is kept.',
    },
    jobPartitionsMax: {
      name: 'job-partitions-max',
      type: 'integer',
      default: 1_000_000,
      min: 1,
      reloadable: true,
      about: 'Most partitions of one job; more are refused with LIMIT_EXCEEDED.',
    },
    jobMaxBytes: {
      name: 'job-size-max',
      type: 'bytes',
      default: '1024tb',
      reloadable: true,
      about: 'Most bytes that one job holds or expects; more are refused with LIMIT_EXCEEDED.',
    },
    jobsMax: {
      name: 'jobs-max',
      type: 'integer',
      default: 10_000,
      min: 1,
      about: 'Most jobs at a time; past it no client may begin another.',
    },
    workersMax: {
      name: 'workers-max',
      type: 'integer',
      default: 10_000,
      min: 1,
      about: 'Most workers, lost ones that are not yet forgotten included.',
    },
    connectionsMax: {
      name: 'connections-max',
      type: 'integer',
      default: 20_000,
      min: 16,
      about:
        'Most HTTP connections; a worker, a job master or a task process needs two. Past it the one that has been idle for the longest gives way.',
    },
    callsMax: {
      name: 'calls-max',
      type: 'integer',
      default: 20_000,
      min: 16,
      about:
        'Most HTTP calls under way, long polls of workers and job masters included; more are answered BUSY.',
    },
    callBodiesBytes: {
      name: 'call-bodies-size',
      type: 'bytes',
      default: '256mb',
      min: '16mb',
      about:
        'Most bytes that the bodies of HTTP calls under way have together; past it calls are answered BUSY.',
    },
    eventsMax: {
      name: 'events-max',
      type: 'integer',
      default: 10_000,
      min: 16,
      max: 1_000_000,
      about: 'Events that are kept for /v1/events.',
    },
    stopTimeoutMs: {
      name: 'stop-timeout',
      type: 'duration',
      default: '2s',
      reloadable: true,
      about: 'On a stop, how long calls that are under way may take.',
    },
    exitWithParent: {
      name: 'exit-with-parent',
      type: 'boolean',
      default: false,
      about:
        'Whether the manager stops when its standard input ends: for a parent that started it.',
    },
    logLevel: {
      name: 'log-level',
      type: 'enum',
      choices: ['debug', 'info', 'warn', 'error'],
      default: 'info',
      reloadable: true,
      about: 'Least severe log lines that are written.',
    },
  },
  [
    (values) => complaintAboutPatterns(values.metricsAllow),
    (values) =>
      values.workerSuspectMs >= values.heartbeatIntervalMs * 2
        ? undefined
        : '--worker-suspect-after must be at least twice --heartbeat-interval',
    (values) =>
      values.workerRecoveryMs >= values.workerSuspectMs
        ? undefined
        : '--worker-recovery-time must be at least --worker-suspect-after',
    (values) =>
      values.workerForgetMs >= values.workerRecoveryMs
        ? undefined
        : '--worker-forget-after must be at least --worker-recovery-time',
    (values) =>
      values.jobTimeoutMs >= values.heartbeatIntervalMs * 4
        ? undefined
        : '--job-timeout must be at least four times --heartbeat-interval',
  ],
)

export type ManagerOptions = OptionValues<typeof managerOptions>
