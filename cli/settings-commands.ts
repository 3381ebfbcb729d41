// The commands that change processes while they run: `log-level` and `reload`.

import { ShuffleError } from '../client/index.ts'
import { logLevels } from '../client/common/log.ts'
import type { ReloadAnswer } from '../client/manager/api-settings.ts'
import { exitCodes, type ExitCode } from './command.ts'
import {
  asJson,
  clusterCommandOptions,
  managerCommand,
  type ClusterCall,
  type ClusterValues,
} from './manager-command.ts'
import { callProcess, namedProcesses, type ProcessRequest } from './process-calls.ts'

const targets =
  'TARGET is `all` (which it is when not given), `manager`, `workers`, or a worker by its id or address.'

export const logLevelCommand = managerCommand({
  declaration: clusterCommandOptions,
  usage: 'sluice log-level LEVEL [TARGET] [options]',
  about: `Changes the level of the log of running processes: debug, info, warn or error; until it is changed again or the process ends. ${targets}`,
  argumentNames: ['LEVEL', '[TARGET]'],
  examples: [
    { about: 'See more of one worker', command: 'sluice log-level debug worker-4f1c' },
    { about: 'And less again', command: 'sluice log-level info worker-4f1c' },
  ],
  run: async (call) => {
    const [level = '', target = 'all'] = call.args
    if (!logLevels.some((known) => known === level)) {
      throw new ShuffleError('INVALID_ARGUMENT', `LEVEL must be one of ${logLevels.join(', ')}`)
    }
    const request = { method: 'PUT', path: '/v1/process/log-level', body: { level } } as const
    return await eachProcess<{ readonly level: string }>(call, target, request, (answer) => [
      `logs from level ${answer.level} on`,
    ])
  },
})

export const reloadCommand = managerCommand({
  declaration: clusterCommandOptions,
  usage: 'sluice reload [TARGET] [options]',
  about: `Lets running processes read their configuration again. What can change while they run (docs/options.md says which options are reloadable) is in effect at once; the rest is named, and waits for the next start. SIGHUP does the same to one process. ${targets}`,
  argumentNames: ['[TARGET]'],
  run: async (call) => {
    const [target = 'all'] = call.args
    const request = { method: 'POST', path: '/v1/process/reload', body: {} } as const
    return await eachProcess<ReloadAnswer>(call, target, request, describeReload)
  },
})

function describeReload({ changed, needRestart }: ReloadAnswer): string[] {
  const shown = (text: string) => (text === '' ? 'not set' : text)
  if (changed.length === 0 && needRestart.length === 0) return ['nothing has changed']
  return [
    ...changed.map(
      ({ name, before, after }) => `${name} is now ${shown(after)} (was ${shown(before)})`,
    ),
    ...needRestart.map(
      ({ name, before, after }) =>
        `${name} stays ${shown(before)}: it needs a restart to become ${shown(after)}`,
    ),
  ]
}

/** One after the other: who fails is named, the others go on, and the exit code is 1. */
async function eachProcess<Answer>(
  { client, values, context, token }: ClusterCall<ClusterValues>,
  target: string,
  request: ProcessRequest,
  describe: (answer: Answer) => readonly string[],
): Promise<ExitCode> {
  const outcomes: Record<string, Answer | { readonly error: string }> = {}
  let code: ExitCode = exitCodes.success
  for (const process of await namedProcesses(client, values.manager, target)) {
    try {
      const answer = await callProcess<Answer>(process, request, token)
      outcomes[process.name] = answer
      if (!values.json) {
        for (const line of describe(answer)) context.print(`${process.name}: ${line}\n`)
      }
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      outcomes[process.name] = { error: message }
      code = exitCodes.failure
      context.note(`${message}\n`)
    }
  }
  if (values.json) context.print(asJson(outcomes))
  return code
}
