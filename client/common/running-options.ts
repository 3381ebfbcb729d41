// The options of a process while it runs: what they are and where each came from, which of them can be
// read again, and the level of its log. The values are one object for the life of the process: who
// reads an option when it uses it sees what was read last.

import { ShuffleError } from './errors.ts'
import type { LogLevel, LoggedProblem, ProcessLogger } from './log.ts'
import { formatOption, type OptionValue } from './option-kinds.ts'
import type { OptionsDeclaration, OptionTable, ParsedOptions } from './options.ts'

/** An option as people see it. */
export interface ShownOption {
  readonly name: string
  /** Empty when it is not set. */
  readonly value: string
  /** As `--print-config` says it. */
  readonly source: string
  readonly isReloadable: boolean
}

export interface OptionChange {
  readonly name: string
  readonly before: string
  readonly after: string
}

export interface ReloadOutcome {
  /** In effect from now on. */
  readonly changed: readonly OptionChange[]
  /** Differ in the sources, and take effect when the process starts again. */
  readonly needRestart: readonly OptionChange[]
}

/** What the HTTP port of a process needs of it. */
export interface ProcessSettings {
  shownOptions(): readonly ShownOption[]
  /** INVALID_ARGUMENT when the sources can't be read or are wrong: then nothing has changed. */
  reload(): ReloadOutcome
  logLevel: LogLevel
  readonly problems: readonly LoggedProblem[]
}

export class RunningOptions<Table extends OptionTable> implements ProcessSettings {
  readonly #declaration: OptionsDeclaration<Table>
  readonly #read: () => ParsedOptions<Table>
  readonly #logger: ProcessLogger
  #parsed: ParsedOptions<Table>

  constructor(settings: {
    readonly declaration: OptionsDeclaration<Table>
    readonly parsed: ParsedOptions<Table>
    /** Reads all sources again; throws INVALID_ARGUMENT. */
    readonly read: () => ParsedOptions<Table>
    readonly logger: ProcessLogger
  }) {
    this.#declaration = settings.declaration
    this.#parsed = settings.parsed
    this.#read = settings.read
    this.#logger = settings.logger
  }

  get logLevel(): LogLevel {
    return this.#logger.level
  }

  /** Until it is set again, or the option is read again with another value. */
  set logLevel(level: LogLevel) {
    const before = this.#logger.level
    this.#logger.level = level
    this.#logger.info({ before, level }, 'the level of the log was changed')
  }

  get problems(): readonly LoggedProblem[] {
    return this.#logger.problems
  }

  shownOptions(): readonly ShownOption[] {
    return Object.entries(this.#declaration.options).map(([key, option]) => ({
      name: option.name,
      value: this.#text(key, this.#values),
      source: this.#parsed.sources[key]?.where ?? 'default',
      isReloadable: option.reloadable === true,
    }))
  }

  reload(): ReloadOutcome {
    const next = this.#read()
    const nextValues = next.values as Readonly<Record<string, OptionValue | undefined>>
    const different = Object.keys(this.#declaration.options).filter(
      (key) => this.#text(key, nextValues) !== this.#text(key, this.#values),
    )
    const isReloadable = (key: string) => this.#declaration.options[key]?.reloadable === true
    const reloaded = different.filter(isReloadable)
    this.#checkTogether(reloaded, nextValues)
    const changes = (keys: readonly string[]) => keys.map((key) => this.#change(key, nextValues))
    const outcome = {
      changed: changes(reloaded),
      needRestart: changes(different.filter((key) => !isReloadable(key))),
    }
    for (const key of reloaded) this.#values[key] = nextValues[key]
    this.#parsed = {
      ...this.#parsed,
      sources: {
        ...this.#parsed.sources,
        ...Object.fromEntries(reloaded.map((key) => [key, next.sources[key]])),
      },
    }
    if (reloaded.includes('logLevel')) this.#logger.level = this.#values['logLevel'] as LogLevel
    this.#logger.info({ ...outcome }, 'the configuration was read again')
    return outcome
  }

  /** What is read again must fit what stays as it was. */
  #checkTogether(
    reloaded: readonly string[],
    next: Readonly<Record<string, OptionValue | undefined>>,
  ): void {
    const mixed: Record<string, OptionValue | undefined> = { ...this.#values }
    for (const key of reloaded) mixed[key] = next[key]
    const complaints = this.#declaration.inconsistencies(mixed as ParsedOptions<Table>['values'])
    if (complaints.length === 0) return
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `what can be read again does not fit what can't; restart the process instead: ${complaints.join('; ')}`,
    )
  }

  get #values(): Record<string, OptionValue | undefined> {
    return this.#parsed.values
  }

  #change(key: string, next: Readonly<Record<string, OptionValue | undefined>>): OptionChange {
    const name = this.#declaration.options[key]?.name ?? key
    return { name, before: this.#text(key, this.#values), after: this.#text(key, next) }
  }

  #text(key: string, values: Readonly<Record<string, OptionValue | undefined>>): string {
    const option = this.#declaration.options[key]
    const value = values[key]
    if (option === undefined || value === undefined) return ''
    return formatOption(option, value)
  }
}
