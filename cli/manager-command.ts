// What the commands that speak to a manager have in common: where it is, the secret, JSON or text, and
// what a person can do when it does not answer.

import { isShuffleError, silentLogger, ShuffleError } from '../client/index.ts'
import {
  declareOptions,
  type OptionsDeclaration,
  type OptionTable,
  type OptionValues,
} from '../client/common/options.ts'
import { parseClusterId } from '../client/common/ids.ts'
import { realWorld } from '../client/common/real-world.ts'
import { ManagerClient } from '../client/manager/manager-client.ts'
import { exitCodes, type Command, type CommandContext, type ExitCode } from './command.ts'
import { optionCommand } from './option-command.ts'
import { readToken } from './token-file.ts'
import { untilEnded } from './until-ended.ts'

export const clusterOptionTable = {
  manager: {
    name: 'manager',
    type: 'string',
    default: 'http://127.0.0.1:9700',
    pattern: /^http:\/\/[^\s/]+\/?$/,
    allowed: 'an address such as http://127.0.0.1:9700',
    about: "Address of the manager's HTTP port.",
  },
  clusterId: {
    name: 'cluster-id',
    type: 'string',
    default: 'sluice',
    lengthMax: 200,
    about: 'Name of the cluster; a manager of another one refuses.',
  },
  tokenFile: {
    name: 'token-file',
    type: 'path',
    about: 'File with the secret shared by the cluster, where it has one.',
  },
  json: { name: 'json', type: 'boolean', default: false, about: 'Print JSON, for programs.' },
} as const

export const clusterCommandOptions = declareOptions('command', clusterOptionTable)

export type ClusterValues = OptionValues<typeof clusterCommandOptions>

/** One try and a few more: a person waits. */
const retryForMs = 2000

/** What a command works with. */
export interface ClusterCall<Values> {
  readonly client: ManagerClient
  readonly values: Values
  readonly context: CommandContext
  readonly token: string | undefined
  /** The command's arguments without a flag, as many as `argumentNames` at most. */
  readonly args: readonly string[]
  /** All that was given after the command's name. */
  readonly argv: readonly string[]
}

export interface ManagerCommandParts<Table extends OptionTable> {
  readonly declaration: OptionsDeclaration<Table>
  readonly usage: string
  readonly about: string
  readonly examples?: readonly { readonly command: string; readonly about: string }[]
  /** Its arguments, all needed; one in brackets may be left out. */
  readonly argumentNames?: readonly string[]
  /** Answers the exit code, or nothing for success. */
  readonly run: (
    call: ClusterCall<OptionValues<OptionsDeclaration<Table>> & ClusterValues>,
  ) => Promise<ExitCode | undefined>
}

export function managerCommand<const Table extends OptionTable>(
  parts: ManagerCommandParts<Table>,
): Command {
  const { declaration, usage, about, examples, argumentNames = [] } = parts
  return optionCommand({
    declaration,
    usage,
    about,
    ...(examples === undefined ? {} : { examples }),
    positionalsMax: argumentNames.length,
    run: async ({ values, positionals }, context, argv) => {
      const missing = argumentNames[positionals.length]
      if (missing !== undefined && !missing.startsWith('[')) {
        throw new ShuffleError('INVALID_ARGUMENT', `${missing} is missing; usage: ${usage}`)
      }
      const typed = values as OptionValues<OptionsDeclaration<Table>> & ClusterValues
      const token = readToken(typed.tokenFile, context)
      const client = clientOf(typed, token)
      try {
        const call = { client, values: typed, context, token, args: positionals, argv }
        const code = await untilEnded(parts.run(call), context)
        return code ?? exitCodes.success
      } catch (error) {
        throw withAdvice(error, typed.manager)
      } finally {
        await client.close()
      }
    },
  })
}

export function clientOf(
  values: Pick<ClusterValues, 'manager' | 'clusterId'>,
  token: string | undefined,
): ManagerClient {
  return new ManagerClient({
    world: realWorld(),
    logger: silentLogger,
    url: values.manager,
    clusterId: parseClusterId(values.clusterId),
    retryForMs,
    ...(token === undefined ? {} : { token }),
  })
}

/** For calls without parameters, query and body. */
export const nothing = { params: {}, query: {}, body: undefined }

export function asJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** What a person can do about it. */
function withAdvice(error: unknown, manager: string): unknown {
  if (isShuffleError(error, 'NO_MANAGER')) {
    return new ShuffleError(
      'NO_MANAGER',
      `no manager answers at ${manager}; start one with \`sluice local\`, or give its address with --manager`,
      { cause: error },
    )
  }
  if (isShuffleError(error, 'UNAUTHENTICATED')) {
    return new ShuffleError(
      'UNAUTHENTICATED',
      `${error.message}; give the secret of the cluster with --token-file, its name with --cluster-id`,
      { cause: error },
    )
  }
  return error
}
