// The options of the worker, declared once, and what the process makes of their texts.

import path from 'node:path'
import { ShuffleError } from '../client/common/errors.ts'
import { complaintAboutPatterns } from '../client/common/metric-filter.ts'
import { declareOptions, type OptionValues } from '../client/common/options.ts'

export const workerOptions = declareOptions(
  'worker',
  {
    clusterId: {
      name: 'cluster-id',
      type: 'string',
      default: 'sluice',
      lengthMax: 200,
      pattern: /^[\x21-\x7e]+$/,
      about: 'Name of the cluster; a peer or a data directory of another cluster is refused.',
    },
    manager: {
      name: 'manager',
      type: 'string',
      default: 'http://127.0.0.1:9700',
      pattern: /^http:\/\/[^\s/]+\/?$/,
      allowed: 'an address such as http://127.0.0.1:9700',
      about: "Address of the shuffle manager's HTTP port.",
    },
    dataDirectories: {
      name: 'data-directories',
      type: 'list',
      required: true,
      itemsMin: 1,
      about:
        'Directories for partitions, best one a disk. Written [HDD]/path where the disk has heads; [SSD]/path or a path alone where it has none. [SSD:DIRECT] and [HDD:BUFFERED] are the defaults of their kinds: files of partitions go past the page cache (DIRECT) or through it (BUFFERED).',
    },
    host: {
      name: 'host',
      type: 'host',
      about:
        'Name or address under which clients reach this worker; told to the manager. The bind host unless given.',
    },
    bindHost: {
      name: 'bind-host',
      type: 'host',
      default: '127.0.0.1',
      about: 'Address that the data port and the HTTP port listen on.',
    },
    dataPort: { name: 'data-port', type: 'port', default: 9710, about: 'Port of the data plane.' },
    httpPort: {
      name: 'http-port',
      type: 'port',
      default: 9711,
      about: 'Port for health, metrics and status.',
    },
    tokenFile: {
      name: 'token-file',
      type: 'path',
      about:
        'File with the secret shared by the cluster. With it every connection has to prove that it knows the secret.',
    },
    metricsNeedToken: {
      name: 'metrics-need-token',
      type: 'boolean',
      default: false,
      about: 'Whether /metrics asks for the bearer token as the status pages do.',
    },
    metricsAllow: {
      name: 'metrics-allow',
      type: 'list',
      default: [],
      reloadable: true,
      about:
        'Metrics that /metrics shows, as regular expressions for whole names; all when it is empty.',
    },
    memoryBytes: {
      name: 'memory',
      type: 'bytes',
      default: '64mb',
      min: '8mb',
      about: 'All memory for payload and indexes; three eighths each for writes and reads.',
    },
    bufferSizeBytes: {
      name: 'buffer-size',
      type: 'bytes',
      default: '32kb',
      min: '4kb',
      max: '256kb',
      about: 'Size of a buffer and so of the largest data frame; a power of two.',
    },
    durability: {
      name: 'durability',
      type: 'enum',
      choices: ['none', 'sync'],
      default: 'none',
      about: 'What a commit survives: the death of the process (none) or of the machine (sync).',
    },
    preferredDiskKind: {
      name: 'preferred-disk-kind',
      type: 'enum',
      choices: ['ssd', 'hdd'],
      default: 'ssd',
      about: 'Kind of disk that new partitions go to while it has room.',
    },
    minReservedSpaceBytes: {
      name: 'min-reserved-space',
      type: 'bytes',
      default: '1gb',
      about: 'Space left free on each disk.',
    },
    smallPartitionBytes: {
      name: 'small-partition-size',
      type: 'bytes',
      default: '64kb',
      max: '1mb',
      about: 'Partitions up to this size share a file; 0 gives each its own.',
    },
    diskTimeoutMs: {
      name: 'disk-timeout',
      type: 'duration',
      default: '30s',
      min: '10ms',
      about: 'Longest time of one disk operation; a disk that misses it is suspect.',
    },
    diskProbeIntervalMs: {
      name: 'disk-probe-interval',
      type: 'duration',
      default: '5s',
      min: '10ms',
      about: 'Time between two probes of a disk.',
    },
    diskFailedAfterMs: {
      name: 'disk-failed-after',
      type: 'duration',
      default: '60s',
      min: '100ms',
      about: 'A disk whose probes fail for so long is given up and its partitions are lost.',
    },
    releasedReadersTimeoutMs: {
      name: 'released-readers-timeout',
      type: 'duration',
      default: '5m',
      about: 'How long readers that have begun a partition may go on after its release.',
    },
    pingIntervalMs: {
      name: 'ping-interval',
      type: 'duration',
      default: '10s',
      min: '10ms',
      about: 'A connection that is silent for so long is pinged.',
    },
    idlePingsMax: {
      name: 'idle-pings',
      type: 'integer',
      default: 3,
      min: 1,
      max: 100,
      about: 'A connection is closed after so many pings without an answer.',
    },
    handshakeTimeoutMs: {
      name: 'handshake-timeout',
      type: 'duration',
      default: '10s',
      min: '10ms',
      about: 'Longest time from a connection to its finished handshake.',
    },
    openTimeoutMs: {
      name: 'open-timeout',
      type: 'duration',
      default: '30s',
      min: '10ms',
      about: 'Longest time that opening a partition for writing may take.',
    },
    regionTimeoutMs: {
      name: 'region-timeout',
      type: 'duration',
      default: '60s',
      min: '10ms',
      about: 'An open region without progress for so long fails its write.',
    },
    commitTimeoutMs: {
      name: 'commit-timeout',
      type: 'duration',
      default: '2m',
      min: '10ms',
      about: 'Longest time of a commit.',
    },
    connectionsMax: {
      name: 'connections-max',
      type: 'integer',
      default: 4096,
      min: 1,
      about: 'Most connections of the data port; a client process needs one.',
    },
    channelsPerConnectionMax: {
      name: 'channels-per-connection-max',
      type: 'integer',
      default: 16_384,
      min: 1,
      about: 'Most open channels of one connection.',
    },
    entriesPerChannelMax: {
      name: 'entries-per-channel-max',
      type: 'integer',
      default: 262_144,
      min: 1,
      about: 'Most partitions that one read channel lists.',
    },
    openWritesMax: {
      name: 'open-writes-max',
      type: 'integer',
      default: 8192,
      min: 1,
      about: 'Most partitions that are being written at a time.',
    },
    connectionQueueBytes: {
      name: 'connection-queue-size',
      type: 'bytes',
      default: '4mb',
      min: '64kb',
      about: 'Bytes queued on one connection, past which its channels are skipped until it drains.',
    },
    readAheadBytes: {
      name: 'read-ahead-size',
      type: 'bytes',
      default: '1mb',
      min: '64kb',
      max: '16mb',
      about: "Most bytes read for a channel ahead of its consumer's credit.",
    },
    openFilesMax: {
      name: 'open-files-max',
      type: 'integer',
      default: 4096,
      min: 64,
      about:
        'Most partition files that are kept open for reading. With connections and open writes they must fit the limit of the process.',
    },
    drainTimeoutMs: {
      name: 'drain-timeout',
      type: 'duration',
      default: '30s',
      reloadable: true,
      about: 'On a stop, how long open writes may go on; readers are served meanwhile.',
    },
    drainReadersTimeoutMs: {
      name: 'drain-readers-timeout',
      type: 'duration',
      default: '0ms',
      reloadable: true,
      about: 'On a stop, how long open readers may go on after the writes have ended.',
    },
    leaveForEver: {
      name: 'leave-for-ever',
      type: 'boolean',
      default: false,
      reloadable: true,
      about:
        'Whether a stop tells the manager that the worker will not come back, so that its data counts as lost at once.',
    },
    exitWithParent: {
      name: 'exit-with-parent',
      type: 'boolean',
      default: false,
      about: 'Whether the worker stops when its standard input ends: for a parent that started it.',
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
      Number.isInteger(Math.log2(values.bufferSizeBytes))
        ? undefined
        : `--buffer-size must be a power of two, got ${String(values.bufferSizeBytes)} bytes`,
    (values) =>
      values.memoryBytes >= values.bufferSizeBytes * 128
        ? undefined
        : `--memory must hold at least 128 buffers of --buffer-size, ${String(values.bufferSizeBytes * 128)} bytes`,
    (values) =>
      values.diskFailedAfterMs >= 2 * values.diskProbeIntervalMs
        ? undefined
        : '--disk-failed-after must be at least two of --disk-probe-interval',
    (values) =>
      values.diskFailedAfterMs >= values.diskTimeoutMs
        ? undefined
        : '--disk-failed-after must be at least --disk-timeout',
  ],
)

export type WorkerOptions = OptionValues<typeof workerOptions>

export interface DirectoryOption {
  readonly path: string
  readonly kind: 'ssd' | 'hdd'
  /** As its kind has it unless given. */
  readonly isDirect?: boolean
}

/** Reads `[HDD]/path`, `[SSD:DIRECT]/path` and `/path`; a relative path is under `workingDirectory`. */
export function parseDataDirectories(
  texts: readonly string[],
  workingDirectory: string,
): DirectoryOption[] {
  const directories = texts.map((text): DirectoryOption => {
    const match = /^(?:\[(SSD|HDD)(?::(DIRECT|BUFFERED))?\])?(.+)$/i.exec(text.trim())
    const io = match?.[2]?.toLowerCase()
    const directory = match?.[3]
    if (directory === undefined || directory.startsWith('[')) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `--data-directories must be paths, with [SSD] or [HDD] before (or [SSD:DIRECT], [HDD:BUFFERED]), got ${JSON.stringify(text.slice(0, 80))}`,
      )
    }
    return {
      path: path.resolve(workingDirectory, directory),
      kind: match?.[1]?.toLowerCase() === 'hdd' ? 'hdd' : 'ssd',
      ...(io === undefined ? {} : { isDirect: io === 'direct' }),
    }
  })
  const twice = directories.find(
    (directory, index) => directories.findIndex((other) => other.path === directory.path) !== index,
  )
  if (twice !== undefined) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `--data-directories names ${JSON.stringify(twice.path)} twice`,
    )
  }
  return directories
}
