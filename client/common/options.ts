// Options, declared once: from one declaration come the flag, the environment variable, the YAML
// key, the types, the limits, the help and the reference. Precedence: flag, environment, YAML,
// default.

import { ShuffleError } from './errors.ts'
import { readOption, type OptionDeclaration, type OptionValue } from './option-kinds.ts'
import {
  readEnvironment,
  readFlags,
  readYaml,
  type GivenTexts,
  type OptionSource,
} from './option-sources.ts'

/** The parts of the product that have options; each is a key of the YAML file under `remote-shuffle`. */
export const optionSections = [
  'manager',
  'worker',
  'client',
  'local',
  'sort',
  'word-count',
  'main-job',
  'command',
] as const

export type OptionSection = (typeof optionSections)[number]

export type OptionTable = Readonly<Record<string, OptionDeclaration>>

/** Says what is inconsistent in a set of values that are each allowed; undefined when nothing is. */
export type ConsistencyCheck<Table extends OptionTable> = (
  values: TableValues<Table>,
) => string | undefined

export interface OptionsDeclaration<Table extends OptionTable = OptionTable> {
  readonly section: OptionSection
  readonly options: Table
  /** Runs every check; the texts of those that fail. */
  readonly inconsistencies: (values: TableValues<Table>) => readonly string[]
}

type ValueOf<Option extends OptionDeclaration> = Option extends { readonly type: 'boolean' }
  ? boolean
  : Option extends { readonly type: 'enum'; readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Option extends { readonly type: 'list' }
      ? readonly string[]
      : Option extends { readonly type: 'string' | 'path' | 'host' }
        ? string
        : number

type IsAlwaysGiven<Option extends OptionDeclaration> = Option extends
  { readonly default: string | number | boolean | readonly string[] } | { readonly required: true }
  ? true
  : false

type TableValues<Table extends OptionTable> = {
  readonly [Key in keyof Table]:
    ValueOf<Table[Key]> | (IsAlwaysGiven<Table[Key]> extends true ? never : undefined)
}

/** The values of a declaration: `OptionValues<typeof workerOptions>`. */
export type OptionValues<Declaration> =
  Declaration extends OptionsDeclaration<infer Table> ? TableValues<Table> : never

export interface OptionInput {
  /** Arguments after the command's name. */
  readonly argv?: readonly string[]
  readonly environment?: Readonly<Record<string, string | undefined>>
  readonly yamlText?: string | undefined
  /** Where `yamlText` was read, for error texts. */
  readonly yamlPath?: string | undefined
  /** Relative paths are resolved against it; without it they stay as they are. */
  readonly workingDirectory?: string
  /** How many arguments without a flag are allowed; none unless stated. */
  readonly positionalsMax?: number
}

export interface ParsedOptions<Table extends OptionTable> {
  readonly values: TableValues<Table>
  /** Where each value came from, by the same keys. */
  readonly sources: Readonly<Record<keyof Table, OptionSource>>
  readonly positionals: readonly string[]
}

/**
 * Declares the options of one part. Keys are the names in code: a duration's ends in `Ms`, a size's
 * in `Bytes`. A bad declaration (a default out of its limits, a name twice) throws here.
 */
export function declareOptions<const Table extends OptionTable>(
  section: OptionSection,
  options: Table,
  checks: readonly ConsistencyCheck<Table>[] = [],
): OptionsDeclaration<Table> {
  const names = new Set<string>()
  for (const [key, option] of Object.entries(options)) {
    const complaint = complaintAbout(key, option, names)
    if (complaint !== undefined) {
      throw new ShuffleError(
        'INVALID_ARGUMENT',
        `the declaration of ${section}.${key} ${complaint}`,
      )
    }
    names.add(option.name)
  }
  return {
    section,
    options,
    inconsistencies: (values) =>
      checks.map((check) => check(values)).filter((text) => text !== undefined),
  }
}

/**
 * Reads the values of `declaration` from all sources. Whatever is unknown, not allowed, missing or
 * inconsistent is named in one INVALID_ARGUMENT, a line each.
 */
export function parseOptions<const Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  input: OptionInput,
): ParsedOptions<Table> {
  const flags = readFlags(declaration, input.argv ?? [], input.positionalsMax ?? 0)
  const lasting = {
    section: declaration.section,
    options: lastingOptions(declaration.options),
  }
  const readings = [
    flags,
    readEnvironment(lasting, input.environment ?? {}),
    readYaml(lasting, input.yamlText, input.yamlPath ?? 'the configuration file', optionSections),
  ]
  const problems = readings.flatMap((reading) => reading.problems)
  const values: Record<string, OptionValue | undefined> = {}
  const sources: Record<string, OptionSource> = {}
  for (const [key, option] of Object.entries(declaration.options)) {
    const given = readings
      .map((reading) => reading.given.get(key))
      .filter((texts) => texts !== undefined)
    const found = chooseValue(option, given, input.workingDirectory, problems)
    values[key] = found.value
    sources[key] = found.source
  }
  refuseWhen(problems)
  const typed = values as TableValues<Table>
  refuseWhen(declaration.inconsistencies(typed))
  return {
    values: typed,
    sources: sources as Record<keyof Table, OptionSource>,
    positionals: flags.positionals,
  }
}

/** The defaults with `overrides` in their place, checked as given ones are; for embedding and tests. */
export function optionValues<const Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  overrides: Partial<TableValues<Table>> = {},
): TableValues<Table> {
  const problems: string[] = []
  const values: Record<string, OptionValue | undefined> = {}
  const given = overrides as Readonly<Record<string, OptionValue | undefined>>
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(declaration.options, key)) problems.push(`unknown option ${key}`)
  }
  for (const [key, option] of Object.entries(declaration.options)) {
    const override = given[key]
    const texts = override === undefined ? [] : [textsOf(key, override)]
    values[key] = chooseValue(option, texts, undefined, problems).value
  }
  refuseWhen(problems)
  const typed = values as TableValues<Table>
  refuseWhen(declaration.inconsistencies(typed))
  return typed
}

/** Those that may stand in the environment or in a file. */
export function lastingOptions(options: OptionTable): OptionTable {
  return Object.fromEntries(
    Object.entries(options).filter(([, option]) => option.flagOnly !== true),
  )
}

function complaintAbout(
  key: string,
  option: OptionDeclaration,
  names: ReadonlySet<string>,
): string | undefined {
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(option.name)) return 'has a name that is not kebab-case'
  if (names.has(option.name)) return `uses the name ${option.name} twice`
  if (option.about.trim() === '') return 'says nothing about the option'
  if (option.type === 'duration' && !key.endsWith('Ms')) return 'is a duration: its key ends in Ms'
  if (option.type === 'bytes' && !key.endsWith('Bytes')) return 'is a size: its key ends in Bytes'
  if (option.default === undefined) return undefined
  if (option.required === true) return 'is required and has a default'
  const reading = readOption(option, defaultTexts(option), undefined)
  return reading.kind === 'problem' ? `has a default that ${reading.problem}` : undefined
}

function defaultTexts(option: OptionDeclaration): readonly string[] {
  if (option.type === 'list') return option.default ?? []
  return option.default === undefined ? [] : [String(option.default)]
}

/** Every given text is checked, the first one wins; with none it is the default. */
function chooseValue(
  option: OptionDeclaration,
  given: readonly GivenTexts[],
  workingDirectory: string | undefined,
  problems: string[],
): { readonly value: OptionValue | undefined; readonly source: OptionSource } {
  let chosen: { value: OptionValue; source: OptionSource } | undefined
  for (const { texts, source } of given) {
    const reading = readOption(option, texts, workingDirectory)
    if (reading.kind === 'problem') problems.push(`${source.where} ${reading.problem}`)
    else chosen ??= { value: reading.value, source }
  }
  if (chosen !== undefined) return chosen
  const source: OptionSource = { kind: 'default', where: 'default' }
  if (option.default === undefined) {
    if (option.required === true && given.length === 0) problems.push(`--${option.name} is missing`)
    return { value: undefined, source }
  }
  const reading = readOption(option, defaultTexts(option), workingDirectory)
  return { value: reading.kind === 'value' ? reading.value : undefined, source }
}

function textsOf(key: string, value: OptionValue): GivenTexts {
  const texts = typeof value === 'object' ? value : [String(value)]
  // A number given in code is already in the option's unit.
  const withUnit =
    typeof value === 'number' && key.endsWith('Ms') ? texts.map((text) => `${text}ms`) : texts
  return { texts: withUnit, source: { kind: 'code', where: key } }
}

function refuseWhen(problems: readonly string[]): void {
  if (problems.length === 0) return
  throw new ShuffleError('INVALID_ARGUMENT', problems.join('\n'), {
    fields: { problemCount: problems.length },
  })
}
