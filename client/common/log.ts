// Structured log lines: ids and figures are fields, the message is a fixed sentence.

import { pino } from 'pino'
import { realClock } from './clock.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]
export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** A logger that adds `fields` to each line. */
  child(fields: LogFields): Logger
}

/** A warning or an error that was logged, for who looks later. */
export interface LoggedProblem {
  readonly wallMs: number
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

/** The logger of a process: its level can be changed, and its last problems are kept. */
export interface ProcessLogger extends Logger {
  level: LogLevel
  /** Oldest first. */
  readonly problems: readonly LoggedProblem[]
}

/** Warnings and errors that are kept; a fraction of a megabyte. */
const problemsMax = 200
const fieldLengthMax = 500

/** JSON lines on standard error, so that standard output stays for results. */
export function createLogger(options: {
  readonly level: LogLevel
  readonly role: string
}): ProcessLogger {
  const destination = pino.destination({ fd: 2, sync: true })
  // Which lines are written is decided here, for all children at once.
  const lines = pino(
    { level: 'debug', base: { role: options.role, pid: process.pid } },
    destination,
  )
  return makeLogger(lines, {}, { level: options.level, problems: [] })
}

/** What all children of a logger share. */
interface LogState {
  level: LogLevel
  readonly problems: LoggedProblem[]
}

type Lines = Pick<pino.Logger, LogLevel | 'child'>

/** Over any lines, so that a test can look at them. */
export function makeLogger(lines: Lines, bound: LogFields, state: LogState): ProcessLogger {
  const write = (level: LogLevel) => (fields: LogFields, message: string) => {
    const isProblem = level === 'warn' || level === 'error'
    if (isProblem) keep(state.problems, { level, message, fields: { ...bound, ...fields } })
    if (logLevels.indexOf(level) >= logLevels.indexOf(state.level)) lines[level](fields, message)
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => makeLogger(lines.child(fields), { ...bound, ...fields }, state),
    get level() {
      return state.level
    },
    set level(level) {
      state.level = level
    },
    problems: state.problems,
  }
}

function keep(
  problems: LoggedProblem[],
  line: { readonly level: LogLevel; readonly message: string; readonly fields: LogFields },
): void {
  const fields = Object.fromEntries(
    Object.entries(line.fields).map(([name, value]) => [name, shown(value)]),
  )
  problems.push({ ...line, fields, wallMs: realClock.wallMs() })
  if (problems.length > problemsMax) problems.shift()
}

function shown(value: unknown): string {
  if (value instanceof Error) return String(value).slice(0, fieldLengthMax)
  try {
    const text = JSON.stringify(value) as string | undefined
    return (text ?? 'undefined').slice(0, fieldLengthMax)
  } catch {
    return 'a value that has no JSON'
  }
}

/** Drops everything; for tests and embedding runtimes that want silence. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
}
