// A process for commands that a test looks into.

import type { CommandContext } from '../../cli/command.ts'

export interface TestContext extends CommandContext {
  /** All that was printed, as results and otherwise. */
  readonly printed: string[]
  readonly noted: string[]
}

export function commandContext(settings: Partial<CommandContext> = {}): TestContext {
  const printed: string[] = []
  const noted: string[] = []
  return {
    environment: {},
    workingDirectory: '/work-of-the-caller',
    signal: new AbortController().signal,
    isTerminal: false,
    print: (text) => printed.push(text),
    note: (text) => noted.push(text),
    readFile: (path) => {
      throw new Error(`ENOENT: ${path}`)
    },
    printed,
    noted,
    ...settings,
  }
}
