// `sluice local`: a cluster on this machine, until it is told to stop.

import { isShuffleError, ShuffleError } from '../client/index.ts'
import { declareOptions } from '../client/common/options.ts'
import { formatBytes } from '../client/common/option-kinds.ts'
import { exitCodes, type CommandContext } from './command.ts'
import { LocalCluster } from './local-cluster.ts'
import { optionCommand } from './option-command.ts'
import { exitCodeOfSignal } from './run-command.ts'

export const localOptions = declareOptions('local', {
  workers: {
    name: 'workers',
    type: 'integer',
    default: 2,
    min: 1,
    max: 64,
    about: 'Workers to start.',
  },
  freePorts: {
    name: 'free-ports',
    type: 'boolean',
    default: false,
    about: 'Take any free ports, not 9700 for the manager and 9710, 9720 … for the workers.',
  },
  directory: {
    name: 'directory',
    type: 'path',
    about:
      'Where the data go and stay for the next start; without it a temporary directory that is removed at the end.',
  },
  workerMemoryBytes: {
    name: 'worker-memory',
    type: 'bytes',
    default: '64mb',
    min: '8mb',
    about: 'Buffer memory of each worker.',
  },
  clusterId: {
    name: 'cluster-id',
    type: 'string',
    default: 'sluice',
    lengthMax: 200,
    about: 'Name of the cluster.',
  },
  json: {
    name: 'json',
    type: 'boolean',
    default: false,
    about: 'Print a line of JSON with addresses and process ids when all are ready.',
  },
})

export const localCommand = optionCommand({
  declaration: localOptions,
  usage: 'sluice local [--workers N] [options]',
  about:
    'Starts a manager and workers as processes on this machine and says how to use them. When a worker ends, the others go on. Ctrl-C stops all of them, and so does the end of this command for any other reason. They listen on the loopback address only and ask for no token.',
  examples: [
    { about: 'A cluster of three workers', command: 'sluice local --workers 3' },
    {
      about: 'Data that stay for the next time',
      command: 'sluice local --directory ./sluice-data',
    },
  ],
  run: async ({ values }, context) => {
    const starting = LocalCluster.start({
      workerCount: values.workers,
      ports: values.freePorts ? 'free' : 'default',
      clusterId: values.clusterId,
      signal: context.signal,
      workerArguments: [`--memory=${formatBytes(values.workerMemoryBytes)}`],
      onLog: (text) => {
        context.note(text)
      },
      ...(values.directory === undefined ? {} : { directory: values.directory }),
    })
    const cluster = await starting.catch((error: unknown) => {
      throw values.freePorts ? error : withPortAdvice(error)
    })
    try {
      context.print(values.json ? clusterJson(cluster) : clusterText(cluster))
      tellOfLostWorkers(cluster, context)
      const managerEnded = cluster.manager.exited.then(() => true)
      const hasEnded = await Promise.race([stopAsked(context), managerEnded])
      if (!hasEnded) return exitCodeOfSignal(context.signal)
      context.note('sluice local: the manager has ended; the workers are stopped\n')
      return exitCodes.failure
    } finally {
      await cluster.stop()
    }
  },
})

/** The services name their own options, which this command doesn't have. */
function withPortAdvice(error: unknown): unknown {
  if (!isShuffleError(error) || !error.message.includes(' is in use: ')) return error
  const advice = 'does a cluster run here already? --free-ports starts this one beside it'
  return new ShuffleError(error.code, `${error.message}\n${advice}`, { cause: error })
}

/** The others go on without a worker, as in any cluster; without the manager all are stopped. */
function tellOfLostWorkers(cluster: LocalCluster, context: CommandContext): void {
  let isStopping = false
  void cluster.manager.exited.then(() => {
    isStopping = true
  })
  for (const worker of cluster.workers) {
    void worker.exited.then(() => {
      if (isStopping || context.signal.aborted) return
      const name = `worker ${worker.ready.workerId ?? ''} (pid ${worker.pid})`
      context.note(
        `sluice local: ${name} has ended; the others go on. Start it again, in another terminal:\n  ${cluster.restartCommand(worker)}\n`,
      )
    })
  }
}

function stopAsked({ signal }: CommandContext): Promise<false> {
  return new Promise((resolve) => {
    const stop = () => {
      resolve(false)
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

function clusterJson({ manager, workers, managerUrl, directory }: LocalCluster): string {
  const line = {
    role: 'local',
    url: managerUrl,
    directory,
    managerPid: manager.pid,
    workers: workers.map(({ ready, pid }) => ({
      workerId: ready.workerId,
      dataPort: ready.dataPort,
      httpPort: ready.httpPort,
      pid,
    })),
  }
  return `${JSON.stringify(line)}\n`
}

function clusterText({ workers, managerUrl, directory }: LocalCluster): string {
  const isDefault = managerUrl === 'http://127.0.0.1:9700'
  const flag = isDefault ? '' : ` --manager ${managerUrl}`
  const lines = workers.map(
    ({ ready, pid }) =>
      `worker   ${ready.workerId ?? ''}: pid ${pid}, data port ${ready.dataPort ?? 0}, metrics http://127.0.0.1:${ready.httpPort ?? 0}/metrics`,
  )
  return `manager  ${managerUrl} (API: ${managerUrl}/openapi.json, metrics: ${managerUrl}/metrics)
${lines.join('\n')}
data     ${directory}

In another terminal:
  sluice status${flag}
  sluice sort --input FILE --output FILE --manager ${managerUrl}
  sluice jobs${flag}
  sluice workers${flag}

Ctrl-C stops all of it.
`
}
