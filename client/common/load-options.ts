// The flags that every command has (`--config`, `--print-config`, `--help`, `--version`), and the
// reading of options with the configuration file that they name.

import { ShuffleError } from './errors.ts'
import {
  parseOptions,
  type OptionInput,
  type OptionsDeclaration,
  type OptionTable,
  type ParsedOptions,
} from './options.ts'

/** What the user asked for instead of running the command. */
export type CommonRequest = 'help' | 'version' | 'print-config'

export interface CommonFlags {
  /** The arguments without the common flags. */
  readonly argv: readonly string[]
  readonly configPath: string | undefined
  readonly requests: ReadonlySet<CommonRequest>
}

export interface LoadInput extends OptionInput {
  /** Reads a file as UTF-8; throws the system's error. */
  readonly readFile: (path: string) => string
}

/** The lines of help for the common flags. */
export const commonFlagsHelp: readonly (readonly [string, string])[] = [
  ['--config PATH', 'YAML file with options; also SLUICE_CONFIG.'],
  ['--print-config', 'Print every option with its value and where it came from, and exit.'],
  ['--help', 'Print this text.'],
  ['--version', 'Print the version.'],
]

const requestFlags: ReadonlyMap<string, CommonRequest> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['--print-config', 'print-config'],
])

/** Takes the common flags out of `argv`; what follows `--` is left alone. */
export function splitCommonFlags(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
): CommonFlags {
  const rest: string[] = []
  const requests = new Set<CommonRequest>()
  let configPath = environment['SLUICE_CONFIG']
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ''
    const request = requestFlags.get(word)
    if (word === '--') {
      rest.push(...argv.slice(index))
      break
    } else if (request !== undefined) requests.add(request)
    else if (word === '--config') configPath = argv[++index] ?? ''
    else if (word.startsWith('--config=')) configPath = word.slice('--config='.length)
    else rest.push(word)
  }
  if (configPath === '') {
    throw new ShuffleError('INVALID_ARGUMENT', '--config needs the path of a YAML file')
  }
  return { argv: rest, configPath, requests }
}

/** {@link parseOptions} with the file that `--config` or SLUICE_CONFIG names. */
export function loadOptions<const Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  input: LoadInput,
): ParsedOptions<Table> {
  const { argv, configPath } = splitCommonFlags(input.argv ?? [], input.environment)
  if (configPath === undefined) return parseOptions(declaration, { ...input, argv })
  const yamlText = readConfig(configPath, input.readFile)
  return parseOptions(declaration, { ...input, argv, yamlText, yamlPath: configPath })
}

function readConfig(path: string, readFile: (path: string) => string): string {
  try {
    return readFile(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ShuffleError('INVALID_ARGUMENT', `--config ${path} can't be read: ${reason}`, {
      cause: error,
      fields: { path },
    })
  }
}
