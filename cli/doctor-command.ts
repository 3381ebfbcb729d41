// `sluice doctor`: looks at a configuration on this machine, and at a running cluster, and says what is
// wrong with either.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { loadOptions, splitCommonFlags } from '../client/common/load-options.ts'
import { declareOptions } from '../client/common/options.ts'
import { managerApi } from '../client/manager/api.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import { managerOptions } from '../shuffle-manager/options.ts'
import { workerOptions } from '../shuffle-worker/options.ts'
import { exitCodes, type CommandContext } from './command.ts'
import { describeChecks, failure, messageOf, ok, type Check } from './doctor/check.ts'
import {
  askProcessFor,
  askWorker,
  managerChecks,
  processChecks,
  workerChecks,
} from './doctor/cluster-checks.ts'
import { managerMachineChecks, workerMachineChecks, type Machine } from './doctor/machine-checks.ts'
import { asJson, clusterOptionTable, managerCommand, nothing } from './manager-command.ts'
import { managerProcess } from './process-calls.ts'

const doctorOptions = declareOptions('command', {
  ...clusterOptionTable,
  offline: {
    name: 'offline',
    type: 'boolean',
    default: false,
    flagOnly: true,
    about: 'Whether to look at the configuration alone, not at a cluster.',
  },
  file: {
    name: 'file',
    type: 'path',
    flagOnly: true,
    about:
      'Configuration to look at, for the services that it has sections of; that of --config when not given.',
  },
})

/** Workers asked at a time. */
const askedAtOnce = 8

export const doctorCommand = managerCommand({
  declaration: doctorOptions,
  usage: 'sluice doctor [options]',
  about:
    'Looks for what is wrong. With a configuration file (--config or --file): are its options right, its files and disks there and writable, its ports free, are threads, open files, memory and space enough on this machine? Of the cluster: is the manager ready, does each worker answer on both ports, are disks, free space, clocks, versions, thread pools, file limits and event loops well? The exit code is 1 when something failed.',
  examples: [
    {
      about: 'Before a service is started, on its machine',
      command: 'sluice doctor --offline --file /etc/sluice/sluice.yaml',
    },
    {
      about: 'A cluster that runs',
      command: 'sluice doctor --manager http://manager:9700 --token-file /etc/sluice/token',
    },
  ],
  run: async ({ client, values, context, token, argv }) => {
    const file = values.file ?? splitCommonFlags(argv, context.environment).configPath
    const checks: Check[] = file === undefined ? [] : await configurationChecks(file, context)
    if (!values.offline) {
      checks.push(...(await clusterChecks(client, { ...values, token, context })))
    }
    context.print(values.json ? asJson(checks) : describeChecks(checks))
    const hasFailed = checks.some(({ status }) => status === 'failure')
    return hasFailed ? exitCodes.failure : exitCodes.success
  },
})

async function configurationChecks(file: string, context: CommandContext): Promise<Check[]> {
  const machine: Machine = {
    workingDirectory: context.workingDirectory,
    environment: context.environment,
    limitsText: limits(),
  }
  const what = `configuration ${file}`
  let sections: readonly string[]
  try {
    sections = sectionsOf(context.readFile(file))
  } catch (error) {
    return [failure(what, messageOf(error), 'give a YAML file, as docs/options.md describes it')]
  }
  const input = {
    argv: ['--config', file],
    workingDirectory: context.workingDirectory,
    readFile: (path: string) => context.readFile(path),
  }
  const checks: Check[] = [ok(what, `has sections: ${sections.join(', ') || 'none'}`)]
  const section = async (name: string, look: () => Promise<Check[]>) => {
    if (!sections.includes(name)) return
    try {
      checks.push(...(await look()))
    } catch (error) {
      checks.push(
        failure(`${name}: options`, messageOf(error), 'docs/options.md has what is allowed'),
      )
    }
  }
  await section('manager', () => managerMachineChecks(loadOptions(managerOptions, input).values))
  await section('worker', () =>
    workerMachineChecks(loadOptions(workerOptions, input).values, machine),
  )
  return checks
}

/** Nested or dotted keys below `remote-shuffle`. */
function sectionsOf(text: string): string[] {
  const root = (parse(text) ?? {}) as Readonly<Record<string, unknown>>
  const nested = Object.keys(root['remote-shuffle'] ?? {})
  const dotted = Object.keys(root).flatMap(
    (key) => /^remote-shuffle\.([\w-]+)/.exec(key)?.[1] ?? [],
  )
  return [...new Set([...nested.map((key) => key.replace(/\..*/, '')), ...dotted])]
}

function limits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return ''
  }
}

async function clusterChecks(
  client: ManagerClient,
  of: {
    readonly manager: string
    readonly token: string | undefined
    readonly context: CommandContext
  },
): Promise<Check[]> {
  const cluster = await client.call(managerApi.describeCluster, nothing)
  const checks = managerChecks(cluster)
  const own = await askProcessFor(managerProcess(of.manager), of.token)
  checks.push(...processChecks('manager', own))
  const { workers } = await client.call(managerApi.listWorkers, nothing)
  for (const worker of workers) checks.push(...workerChecks(worker, cluster.version))
  const asked = workers.filter(({ state }) => state === 'alive' || state === 'suspect')
  for (let at = 0; at < asked.length; at += askedAtOnce) {
    of.context.signal.throwIfAborted()
    const some = asked.slice(at, at + askedAtOnce)
    of.context.note(
      `asked ${Math.min(at + askedAtOnce, asked.length)} of ${asked.length} workers\n`,
    )
    const found = await Promise.all(some.map((worker) => askWorker(worker, of.token)))
    checks.push(...found.flat())
  }
  return checks
}
