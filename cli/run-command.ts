// Finds the command that the arguments name and runs it; every error ends up here as a line for the
// user and an exit code.

import { isShuffleError } from '../client/common/errors.ts'
import { splitCommonFlags } from '../client/common/load-options.ts'
import { didYouMean } from '../client/common/near-miss.ts'
import { exitCodes, type CommandContext, type ExitCode } from './command.ts'
import type { CommandEntry } from './commands.ts'

/** What runs when no command is named. */
const defaultCommand = 'main-job'

/** By the shell's custom, 128 and the number of the signal. */
const signalExitCodes: Readonly<Record<string, ExitCode>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
}

export interface CommandLine {
  readonly argv: readonly string[]
  readonly commands: Readonly<Record<string, CommandEntry>>
  readonly version: string
}

export async function runCommand(line: CommandLine, context: CommandContext): Promise<ExitCode> {
  try {
    return await dispatch(line, context)
  } catch (error) {
    if (context.signal.aborted) return exitCodeOfSignal(context.signal)
    context.note(`sluice: ${describe(error)}\n`)
    return isShuffleError(error, 'INVALID_ARGUMENT') ? exitCodes.usage : exitCodes.failure
  }
}

/** The exit code of a process that ended because of a signal. */
export function exitCodeOfSignal(signal: AbortSignal): ExitCode {
  return signalExitCodes[String(signal.reason)] ?? exitCodes.failure
}

async function dispatch(
  { argv, commands, version }: CommandLine,
  context: CommandContext,
): Promise<ExitCode> {
  const [first, ...others] = argv
  const isNamed = first !== undefined && !first.startsWith('-')
  const name = isNamed ? first : defaultCommand
  const rest = isNamed ? others : argv
  const { requests } = splitCommonFlags(rest)
  if (requests.has('version')) {
    context.print(`sluice ${version}\n`)
    return exitCodes.success
  }
  if (name === 'help' || (!isNamed && requests.has('help'))) {
    return await printHelp(others[0], commands, context)
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (entry === undefined) {
    context.note(unknownCommand(name, commands))
    return exitCodes.usage
  }
  const command = await entry.load()
  if (requests.has('help')) {
    context.print(command.help())
    return exitCodes.success
  }
  return await command.run(rest, context)
}

async function printHelp(
  of: string | undefined,
  commands: CommandLine['commands'],
  context: CommandContext,
): Promise<ExitCode> {
  const entry = of !== undefined && Object.hasOwn(commands, of) ? commands[of] : undefined
  if (entry === undefined && of !== undefined && !of.startsWith('-')) {
    context.note(unknownCommand(of, commands))
    return exitCodes.usage
  }
  context.print(entry === undefined ? overview(commands) : (await entry.load()).help())
  return exitCodes.success
}

/** What `sluice --help` prints. */
export function overview(commands: CommandLine['commands']): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const lines = Object.entries(commands).map(
    ([name, { about }]) => `  ${name.padEnd(width)}  ${about}`,
  )
  return `Usage: sluice COMMAND [options]

Sluice keeps the data that the tasks of a batch job pass to each other, on workers of its own.

Commands:
${lines.join('\n')}

To begin:
  sluice main-job                                  # what \`npm start\` runs: see it work
  sluice local --workers 2                         # a cluster on this machine
  sluice sort --input FILE --output FILE           # sort a file on a cluster of its own
  sluice COMMAND --help                            # options and examples of a command
`
}

function unknownCommand(name: string, commands: CommandLine['commands']): string {
  const names = Object.keys(commands)
  return `sluice: unknown command ${name}${didYouMean(name, names)}\nCommands: ${names.join(', ')}\n`
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (!isShuffleError(error)) return error.stack ?? error.message
  const fields = Object.entries(error.fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${String(value)}`)
  const isUsage = error.code === 'INVALID_ARGUMENT'
  return isUsage || fields.length === 0
    ? error.message
    : `${error.code}: ${error.message} (${fields.join(', ')})`
}
