// What a command is, and the process as commands see it.

/** The process around a command, so that tests can look at what it prints. */
export interface CommandContext {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
  /** Aborts when the user or the system asks the process to end; the reason is the signal's name. */
  readonly signal: AbortSignal
  /** For results. */
  print(text: string): void
  /** For everything else: progress, warnings. */
  note(text: string): void
  /** Whether notes go to a person's terminal, where a line can be written over. */
  readonly isTerminal: boolean
  readFile(path: string): string
}

/** The code with which the process exits. */
export type ExitCode = number

export const exitCodes = { success: 0, failure: 1, usage: 2 } as const

export interface Command {
  /** The help's first line. */
  readonly usage: string
  /** Prints what `--help` asks for. */
  help(): string
  run(argv: readonly string[], context: CommandContext): Promise<ExitCode>
}
