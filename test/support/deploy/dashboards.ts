// The three Grafana dashboards, as Grafana's JSON: rows of panels, each with its queries.

interface Panel {
  readonly title: string
  readonly about: string
  readonly unit: 'short' | 'bytes' | 'Bps' | 's' | 'percentunit' | 'ops'
  readonly kind?: 'timeseries' | 'stat'
  /** PromQL and legend of each query. */
  readonly queries: readonly (readonly [expression: string, legend: string])[]
}

interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

type Json = Readonly<Record<string, unknown>>

const columns = 24
const panelHeight = 8
const source = { type: 'prometheus', uid: '${datasource}' }

const of = (selector = '') => `{namespace=~"$namespace"${selector === '' ? '' : `,${selector}`}}`
const ofWorker = (selector = '') =>
  of(`instance=~"$instance"${selector === '' ? '' : `,${selector}`}`)
const rate = (name: string, selector: string) => `rate(${name}${selector}[$__rate_interval])`

export function dashboards(): Readonly<Record<string, Json>> {
  return {
    cluster: dashboard('cluster', 'Sluice: cluster', clusterRows(), []),
    worker: dashboard('worker', 'Sluice: worker', workerRows(), [
      variable(
        'instance',
        'label_values(sluice_worker_connections{namespace=~"$namespace"}, instance)',
      ),
    ]),
    pressure: dashboard('pressure', 'Sluice: job pressure', pressureRows(), []),
  }
}

/** Every query of a dashboard. */
export function expressionsOf(made: Json): string[] {
  const panels = made['panels'] as readonly {
    readonly targets?: readonly { readonly expr: string }[]
  }[]
  return panels.flatMap(({ targets }) => (targets ?? []).map(({ expr }) => expr))
}

function clusterRows(): Row[] {
  return [
    {
      title: 'Now',
      panels: [
        stat(
          'Manager ready',
          'Whether it allocates partitions.',
          'short',
          `sluice_manager_ready${of()}`,
        ),
        stat(
          'Workers',
          'Workers by state; a lost one took its data along.',
          'short',
          `sluice_manager_workers${of()}`,
          '{{state}}',
        ),
        stat('Jobs', 'Jobs that are registered.', 'short', `sluice_manager_jobs${of()}`),
        stat(
          'Data held',
          'Bytes of committed partitions.',
          'bytes',
          `sluice_manager_committed_bytes${of()}`,
        ),
      ],
    },
    {
      title: 'Traffic',
      panels: [
        panel('Data', 'Written by producers and read by consumers.', 'Bps', [
          [`sum by (direction) (${rate('sluice_worker_data_bytes_total', of())})`, '{{direction}}'],
        ]),
        panel('Partitions', 'Partitions by state.', 'short', [
          [`sum by (state) (sluice_manager_partitions${of()})`, '{{state}}'],
        ]),
        panel('Allocated and released', 'Partitions per second.', 'ops', [
          [`sum(${rate('sluice_manager_allocations_total', of())})`, 'allocated'],
          [`sum(${rate('sluice_manager_releases_total', of())})`, 'released'],
        ]),
        panel('Expected', 'Bytes that are expected of partitions not yet committed.', 'bytes', [
          [`sluice_manager_pending_bytes${of()}`, 'pending'],
        ]),
      ],
    },
    {
      title: 'Disks',
      panels: [
        panel('Disk used', 'Share of each worker’s disks.', 'percentunit', [
          [
            `1 - sum by (instance) (sluice_worker_disk_available_bytes${of()}) / sum by (instance) (sluice_worker_disk_total_bytes${of()})`,
            '{{instance}}',
          ],
        ]),
        panel(
          'Disks by health',
          'Suspect: missed a deadline. Failed: its partitions are lost.',
          'short',
          [[`sum by (health) (sluice_worker_disk_health${of()})`, '{{health}}']],
        ),
      ],
    },
    {
      title: 'Trouble',
      panels: [
        panel('Errors of workers', 'Errors per second that peers were told of.', 'ops', [
          [`sum by (code) (${rate('sluice_worker_errors_total', of())}) > 0`, '{{code}}'],
        ]),
        panel('Errors of the manager', 'Calls per second answered with an error.', 'ops', [
          [`sum by (code) (${rate('sluice_manager_errors_total', of())}) > 0`, '{{code}}'],
        ]),
        panel(
          'Reports of clients',
          'Failed reads and writes that task processes reported.',
          'ops',
          [
            [
              `sum by (code) (${rate('sluice_manager_client_reports_total', of())}) > 0`,
              '{{code}}',
            ],
          ],
        ),
        panel('Restarts of the manager', 'Its epoch: each start has a higher one.', 'short', [
          [`changes(sluice_manager_epoch${of()}[1h])`, 'restarts'],
        ]),
        panel('Partitions lost', 'Committed partitions that can no longer be served.', 'ops', [
          [`sum by (cause) (${rate('sluice_worker_partitions_lost_total', of())})`, '{{cause}}'],
        ]),
        panel('Writes failed', 'Open writes that ended without a commit.', 'ops', [
          [`sum(${rate('sluice_worker_partition_writes_failed_total', of())})`, 'failed'],
        ]),
      ],
    },
    {
      title: 'Manager',
      panels: [
        panel('Calls', 'HTTP calls per second.', 'ops', [
          [`sum by (call) (${rate('sluice_manager_http_requests_total', of())})`, '{{call}}'],
        ]),
        panel('Time of calls', 'Heartbeats wait on purpose.', 's', [
          [
            `histogram_quantile(0.99, sum by (call, le) (${rate('sluice_manager_http_request_seconds_bucket', of('call!~".*eartbeat.*"'))}))`,
            '{{call}} p99',
          ],
        ]),
        panel('Bodies', 'Bytes of HTTP bodies per second.', 'Bps', [
          [`sum(${rate('sluice_manager_http_request_bytes_total', of())})`, 'requests'],
          [`sum(${rate('sluice_manager_http_answer_bytes_total', of())})`, 'answers'],
        ]),
        panel('Event loop and memory', 'How late timers run; long polls that wait.', 's', [
          [`sluice_manager_event_loop_lag_seconds${of()}`, 'lag'],
        ]),
        panel('Resident memory', 'Of the manager.', 'bytes', [
          [`sluice_manager_resident_memory_bytes${of()}`, 'resident'],
        ]),
        panel('Long polls', 'Heartbeats that wait for something to say.', 'short', [
          [`sluice_manager_long_polls${of()}`, 'waiting'],
        ]),
      ],
    },
  ]
}

function workerRows(): Row[] {
  return [
    {
      title: 'Now',
      panels: [
        stat(
          'Draining',
          '1 while the worker is stopping.',
          'short',
          `sluice_worker_draining${ofWorker()}`,
          '{{instance}}',
        ),
        stat(
          'Connections',
          'Of the data port.',
          'short',
          `sluice_worker_connections${ofWorker()}`,
          '{{instance}}',
        ),
        stat(
          'Event loop lag',
          'At worst in the last one to two minutes.',
          's',
          `sluice_worker_event_loop_lag_seconds${ofWorker()}`,
          '{{instance}}',
        ),
        stat(
          'Disk available',
          'What new regions may reserve.',
          'bytes',
          `sum by (instance) (sluice_worker_disk_available_bytes${ofWorker()})`,
          '{{instance}}',
        ),
      ],
    },
    {
      title: 'Data port',
      panels: [
        panel('Data', 'In: written by producers. Out: read by consumers.', 'Bps', [
          [
            `sum by (instance, direction) (${rate('sluice_worker_data_bytes_total', ofWorker())})`,
            '{{instance}} {{direction}}',
          ],
        ]),
        panel('Frames', 'Data frames per second.', 'ops', [
          [
            `sum by (instance, direction) (${rate('sluice_worker_data_frames_total', ofWorker())})`,
            '{{instance}} {{direction}}',
          ],
        ]),
        panel('Channels', 'Open channels by kind.', 'short', [
          [
            `sum by (instance, kind) (sluice_worker_channels${ofWorker()})`,
            '{{instance}} {{kind}}',
          ],
        ]),
        panel('Queued', 'Bytes sent and not yet taken by the system.', 'bytes', [
          [`sluice_worker_connection_queued_bytes${ofWorker()}`, '{{instance}}'],
        ]),
      ],
    },
    {
      title: 'Disks',
      panels: [
        panel('Operations', 'File calls per second.', 'ops', [
          [
            `sum by (directory, operation) (${rate('sluice_worker_disk_operations_total', ofWorker())})`,
            '{{directory}} {{operation}}',
          ],
        ]),
        panel('Time of reads and writes', 'At the disk, without the wait for their turn.', 's', [
          [
            `histogram_quantile(0.99, sum by (directory, operation, le) (${rate('sluice_worker_disk_operation_seconds_bucket', ofWorker('operation=~"read|write"'))}))`,
            '{{directory}} {{operation}} p99',
          ],
          [
            `histogram_quantile(0.5, sum by (directory, operation, le) (${rate('sluice_worker_disk_operation_seconds_bucket', ofWorker('operation=~"read|write"'))}))`,
            '{{directory}} {{operation}} p50',
          ],
        ]),
        panel('Queue', 'File calls at the disk and waiting for it.', 'short', [
          [`sluice_worker_disk_operations_in_flight${ofWorker()}`, '{{directory}} in flight'],
          [`sluice_worker_disk_operations_waiting${ofWorker()}`, '{{directory}} waiting'],
        ]),
        panel(
          'Read by sweeps',
          'Gaps between slices included; compare with what went out.',
          'Bps',
          [
            [
              `sum by (instance) (${rate('sluice_worker_sweep_read_bytes_total', ofWorker())})`,
              '{{instance}}',
            ],
          ],
        ),
        panel('Space', 'What partitions take, what is reserved, what is left.', 'bytes', [
          [`sluice_worker_disk_partition_bytes${ofWorker()}`, '{{directory}} partitions'],
          [`sluice_worker_disk_reserved_bytes${ofWorker()}`, '{{directory}} reserved'],
          [`sluice_worker_disk_available_bytes${ofWorker()}`, '{{directory}} available'],
        ]),
        panel(
          'Health',
          '1 for the state that a disk is in; full: closed to new partitions.',
          'short',
          [
            [
              `sluice_worker_disk_health${ofWorker('health!="healthy"')}`,
              '{{directory}} {{health}}',
            ],
            [`sluice_worker_disk_full${ofWorker()}`, '{{directory}} full'],
          ],
        ),
        panel('Open files', 'Files open for reading.', 'short', [
          [`sluice_worker_disk_open_files${ofWorker()}`, '{{directory}}'],
        ]),
        panel(
          'Drift',
          'Free space found less what was expected: others write there too.',
          'bytes',
          [[`sluice_worker_disk_drift_bytes${ofWorker()}`, '{{directory}}']],
        ),
      ],
    },
    {
      title: 'Memory',
      panels: [
        panel('In use', 'Of the ledger, by purpose.', 'bytes', [
          [
            `sum by (instance, purpose) (sluice_worker_memory_used_bytes${ofWorker()})`,
            '{{instance}} {{purpose}}',
          ],
        ]),
        panel('Waiting', 'Requests that wait for memory.', 'short', [
          [
            `sum by (instance, purpose) (sluice_worker_memory_waiters${ofWorker()})`,
            '{{instance}} {{purpose}}',
          ],
        ]),
        panel('Buffers', 'In the hands of channels; ahead: filled beyond the credit.', 'short', [
          [
            `sum by (instance, kind) (sluice_worker_buffers_held${ofWorker()})`,
            '{{instance}} {{kind}}',
          ],
          [`sluice_worker_buffers_ahead_of_credit${ofWorker()}`, '{{instance}} ahead'],
        ]),
        panel(
          'Small partitions held',
          'Bytes of open small partitions held until they finish.',
          'bytes',
          [[`sluice_worker_held_small_partition_bytes${ofWorker()}`, '{{instance}}']],
        ),
      ],
    },
    {
      title: 'Partitions',
      panels: [
        panel('By state', 'Partitions of the worker.', 'short', [
          [
            `sum by (instance, state) (sluice_worker_partitions${ofWorker()})`,
            '{{instance}} {{state}}',
          ],
        ]),
        panel('Committed', 'Partitions per second.', 'ops', [
          [
            `sum by (instance) (${rate('sluice_worker_partitions_committed_total', ofWorker())})`,
            '{{instance}}',
          ],
        ]),
        panel('Errors', 'Per second, by code.', 'ops', [
          [
            `sum by (instance, code) (${rate('sluice_worker_errors_total', ofWorker())}) > 0`,
            '{{instance}} {{code}}',
          ],
        ]),
        panel('Waits', 'Waits in the register of waiters.', 'short', [
          [`sluice_worker_waiters${ofWorker()}`, '{{instance}}'],
        ]),
      ],
    },
  ]
}

/** Where the time of jobs goes: what channels wait for, and whether that is ours or theirs. */
function pressureRows(): Row[] {
  const share = (name: string) =>
    `sum by (state) (${rate(name, of())}) / ignoring (state) group_left sum(${rate(name, of())})`
  return [
    {
      title: 'What channels wait for',
      panels: [
        panel(
          'Writes',
          'Share of the time of all write channels. Credit and disk are the service’s, idle is the job’s.',
          'percentunit',
          [[share('sluice_worker_write_state_seconds'), '{{state}}']],
        ),
        panel(
          'Reads',
          'Share of the time of all read channels. Waiting for the peer’s credit is the consumer’s.',
          'percentunit',
          [[share('sluice_worker_read_state_seconds'), '{{state}}']],
        ),
      ],
    },
    {
      title: 'Flow control',
      panels: [
        panel('Credit', 'Granted and not yet used.', 'short', [
          [`sum by (kind) (sluice_worker_credit_outstanding${of()})`, '{{kind}}'],
        ]),
        panel(
          'Time in state',
          'Seconds per second, of all jobs, as workers and clients told.',
          'short',
          [[`sum by (state) (${rate('sluice_manager_time_in_state_seconds', of())})`, '{{state}}']],
        ),
        panel('Regions waiting', 'Open regions that wait for their first credit.', 'short', [
          [`sum(sluice_worker_regions_waiting${of()})`, 'regions'],
        ]),
        panel(
          'Partitions listed',
          'In the lists of read channels, neither finished nor failed.',
          'short',
          [[`sum(sluice_worker_partitions_listed${of()})`, 'partitions']],
        ),
        panel('Memory waiters', 'Requests that wait for memory, by purpose.', 'short', [
          [`sum by (purpose) (sluice_worker_memory_waiters${of()})`, '{{purpose}}'],
        ]),
      ],
    },
    {
      title: 'Data',
      panels: [
        panel('Compression', 'Bytes before compression per byte on disk.', 'short', [
          [
            `sum(${rate('sluice_worker_committed_uncompressed_bytes_total', of())}) / sum(${rate('sluice_worker_partitions_committed_bytes_total', of())})`,
            'ratio',
          ],
        ]),
        panel('Read amplification', 'Bytes read from disks per byte sent to consumers.', 'short', [
          [
            `sum(${rate('sluice_worker_sweep_read_bytes_total', of())}) / sum(${rate('sluice_worker_data_bytes_total', of('direction="out"'))})`,
            'ratio',
          ],
        ]),
        panel('Bytes per partition', 'Mean size of what is committed.', 'bytes', [
          [
            `sum(${rate('sluice_worker_partitions_committed_bytes_total', of())}) / sum(${rate('sluice_worker_partitions_committed_total', of())})`,
            'mean',
          ],
        ]),
        panel(
          'Spread over workers',
          'Bytes written per second by each worker; far apart is a hot spot.',
          'Bps',
          [
            [
              `sum by (instance) (${rate('sluice_worker_data_bytes_total', of('direction="in"'))})`,
              '{{instance}}',
            ],
          ],
        ),
      ],
    },
  ]
}

function panel(
  title: string,
  about: string,
  unit: Panel['unit'],
  queries: Panel['queries'],
): Panel {
  return { title, about, unit, queries }
}

function stat(
  title: string,
  about: string,
  unit: Panel['unit'],
  expression: string,
  legend = title,
): Panel {
  return { title, about, unit, kind: 'stat', queries: [[expression, legend]] }
}

function dashboard(
  name: string,
  title: string,
  rows: readonly Row[],
  variables: readonly Json[],
): Json {
  const panels: Json[] = []
  let y = 0
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y: y++, w: columns, h: 1 },
    })
    const perLine = row.panels.every(({ kind }) => kind === 'stat') ? 4 : 2
    const width = columns / perLine
    const height = perLine === 4 ? panelHeight / 2 : panelHeight
    row.panels.forEach((each, index) => {
      const gridPos = {
        x: (index % perLine) * width,
        y: y + Math.floor(index / perLine) * height,
        w: width,
        h: height,
      }
      panels.push(panelJson(each, panels.length + 1, gridPos))
    })
    y += Math.ceil(row.panels.length / perLine) * height
  }
  return {
    uid: `sluice-${name}`,
    title,
    tags: ['sluice'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        variable('namespace', 'label_values(sluice_manager_ready, namespace)'),
        ...variables,
      ],
    },
    links: [
      { type: 'dashboards', tags: ['sluice'], title: 'Sluice', asDropdown: true, keepTime: true },
    ],
    panels,
  }
}

/** All values unless chosen: also where the label is not there at all, outside of Kubernetes. */
function variable(name: string, query: string): Json {
  return {
    name,
    type: 'query',
    datasource: source,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    includeAll: true,
    multi: true,
    allValue: '.*',
    current: { selected: true, text: ['All'], value: ['$__all'] },
  }
}

function panelJson({ title, about, unit, kind, queries }: Panel, id: number, gridPos: Json): Json {
  return {
    id,
    title,
    description: about,
    type: kind ?? 'timeseries',
    datasource: source,
    gridPos,
    fieldConfig: {
      defaults: { unit, min: unit === 's' || unit === 'percentunit' ? 0 : undefined },
      overrides: [],
    },
    options:
      kind === 'stat'
        ? { reduceOptions: { calcs: ['lastNotNull'] } }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: source,
      expr,
      legendFormat,
    })),
  }
}
