// The commands that take a worker out of service and put it back: `drain`, `exclude`, `undrain`.

import { ShuffleError } from '../client/index.ts'
import { sleep } from '../client/common/clock.ts'
import { declareOptions } from '../client/common/options.ts'
import { realWorld } from '../client/common/real-world.ts'
import { managerApi } from '../client/manager/api.ts'
import type { WorkerSummary } from '../client/manager/api-workers.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import { exitCodes, type CommandContext, type ExitCode } from './command.ts'
import { showProgress } from './job-progress.ts'
import {
  asJson,
  clusterCommandOptions,
  clusterOptionTable,
  managerCommand,
  nothing,
} from './manager-command.ts'
import { namedWorker } from './named-worker.ts'
import { humanBytes } from './text-table.ts'

const reason = {
  name: 'reason',
  type: 'string',
  default: '',
  lengthMax: 500,
  flagOnly: true,
  about: 'Why; shown with the worker and in the events.',
} as const

const drainOptions = declareOptions('command', {
  ...clusterOptionTable,
  reason,
  wait: {
    name: 'wait',
    type: 'boolean',
    default: false,
    flagOnly: true,
    about:
      'Whether to wait until nothing is written there and nothing is kept there: then the worker can be taken away and nothing has to be produced again.',
  },
  waitTimeoutMs: {
    name: 'wait-timeout',
    type: 'duration',
    default: '1h',
    flagOnly: true,
    about: 'How long to wait at most; after it the worker still drains, and the exit code is 1.',
  },
})

const excludeOptions = declareOptions('command', {
  ...clusterOptionTable,
  reason,
  lost: {
    name: 'lost',
    type: 'boolean',
    default: false,
    flagOnly: true,
    about:
      'Whether its data counts as lost at once, so that jobs produce it again without waiting for the recovery time; of a worker that is silent.',
  },
})

const waitPollMs = 1000
const managerAwayMs = 60_000

export const drainCommand = managerCommand({
  declaration: drainOptions,
  usage: 'sluice drain WORKER [options]',
  about:
    'Takes a worker out of service: it is not chosen for new partitions and refuses those that were placed there and not yet opened (their producers run again elsewhere). Writes that are open may end within its drain-timeout; reads go on. It stays so through restarts, until `sluice undrain`.',
  argumentNames: ['WORKER'],
  examples: [
    {
      about: 'Before a machine is taken away, without anything produced again',
      command: 'sluice drain worker-4f1c --wait --reason "new disks"',
    },
  ],
  run: async ({ client, values, context, args: [name = ''] }) => {
    const worker = await namedWorker(client, name)
    const told = await client.call(managerApi.setWorkerService, {
      params: { workerId: worker.workerId },
      query: {},
      body: { state: 'draining', reason: values.reason },
    })
    if (values.wait) return await waitUntilEmpty(client, told, { ...values, context })
    context.print(values.json ? asJson(told) : `${told.workerId} drains${untold(told)}\n`)
    return exitCodes.success
  },
})

export const undrainCommand = managerCommand({
  declaration: clusterCommandOptions,
  usage: 'sluice undrain WORKER [options]',
  about: 'Puts a worker back into service, whether it was draining or excluded.',
  argumentNames: ['WORKER'],
  run: async ({ client, values, context, args: [name = ''] }) => {
    const worker = await namedWorker(client, name)
    const told = await client.call(managerApi.setWorkerService, {
      params: { workerId: worker.workerId },
      query: {},
      body: { state: 'serving' },
    })
    context.print(
      values.json ? asJson(told) : `${told.workerId} is back in service${untold(told)}\n`,
    )
    return exitCodes.success
  },
})

export const excludeCommand = managerCommand({
  declaration: excludeOptions,
  usage: 'sluice exclude WORKER [options]',
  about:
    'Lets no new partition be placed on a worker. Gentler than drain: what was placed there before is written and read as ever, and no producer runs again. It stays so through restarts, until `sluice undrain`.',
  argumentNames: ['WORKER'],
  examples: [
    {
      about: 'A machine that will not come back: its partitions are produced again at once',
      command: 'sluice exclude worker-4f1c --lost --reason "the machine is gone"',
    },
  ],
  run: async ({ client, values, context, args: [name = ''] }) => {
    const worker = await namedWorker(client, name)
    const told = await client.call(managerApi.setWorkerService, {
      params: { workerId: worker.workerId },
      query: {},
      body: { state: 'excluded', reason: values.reason, ...(values.lost ? { isLost: true } : {}) },
    })
    const lost = values.lost ? ', its data counts as lost' : ''
    context.print(
      values.json ? asJson(told) : `${told.workerId} is excluded${lost}${untold(told)}\n`,
    )
    return exitCodes.success
  },
})

/** The manager keeps nothing: what the worker has not heard, a restart of the manager forgets. */
function untold({ isServiceTold, state }: WorkerSummary): string {
  if (isServiceTold || state === 'alive') return ''
  return `; it is ${state} and does not know it yet: it is told when it registers, unless the manager restarts before`
}

async function waitUntilEmpty(
  client: ManagerClient,
  first: WorkerSummary,
  { json, waitTimeoutMs, context }: WaitOptions,
): Promise<ExitCode> {
  const { clock } = realWorld()
  const deadlineMs = clock.nowMs() + waitTimeoutMs
  let worker = first
  const endProgress = showProgress(() => describeRest(worker), context)
  try {
    while (!isEmpty(worker)) {
      if (clock.nowMs() >= deadlineMs) {
        throw new ShuffleError(
          'BUSY',
          `${worker.workerId} still drains (${describeRest(worker)}); it goes on, ask again or give a longer --wait-timeout`,
        )
      }
      await sleep(clock, waitPollMs, context.signal)
      worker = await stillThere(client, worker, context)
    }
  } finally {
    endProgress()
  }
  context.print(json ? asJson(worker) : `${worker.workerId} is empty and may be taken away\n`)
  return exitCodes.success
}

interface WaitOptions {
  readonly json: boolean
  readonly waitTimeoutMs: number
  readonly context: CommandContext
}

async function stillThere(
  client: ManagerClient,
  before: WorkerSummary,
  { signal }: CommandContext,
): Promise<WorkerSummary> {
  // A manager may be restarted meanwhile.
  const { workers } = await client.call(managerApi.listWorkers, nothing, {
    signal,
    retryForMs: managerAwayMs,
  })
  const worker = workers.find(({ workerId }) => workerId === before.workerId)
  if (worker !== undefined && worker.state !== 'lost') {
    // A manager that has just started knows nothing of it yet.
    return worker.state === 'alive' ? worker : { ...worker, isServiceTold: false }
  }
  throw new ShuffleError(
    'WORKER_UNREACHABLE',
    `${before.workerId} was lost while it drained; what it held is produced again (\`sluice why JOB\`)`,
  )
}

function isEmpty({ isServiceTold, openWrites, partitionCount }: WorkerSummary): boolean {
  return isServiceTold && openWrites === 0 && partitionCount === 0
}

function describeRest(worker: WorkerSummary): string {
  if (!worker.isServiceTold) return 'the worker is being told'
  const bytes = humanBytes(worker.byteCount)
  return `${worker.openWrites} open writes, ${worker.partitionCount} partitions (${bytes}) kept for their jobs`
}
