// Structured log lines: ids and figures are fields, the message is a fixed sentence.

import { pino } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** A logger that adds `fields` to each line. */
  child(fields: LogFields): Logger
}

/** JSON lines on standard error, so that standard output stays for results. */
export function createLogger(options: { readonly level: LogLevel; readonly role: string }): Logger {
  return pino(
    { level: options.level, base: { role: options.role, pid: process.pid } },
    pino.destination({ fd: 2, sync: true }),
  )
}

/** Drops everything; for tests and embedding runtimes that want silence. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
}
