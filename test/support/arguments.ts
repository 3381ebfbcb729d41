// Arguments of the project's own test programs: what is wrong ends the program with a plain line and the
// usage.

import { parseArgs, type ParseArgsConfig } from 'node:util'

export class Arguments {
  readonly #usage: string

  constructor(usage: string) {
    this.#usage = usage
  }

  /** Prints the usage and exits where `--help` is given or something is wrong. */
  parse<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
    if (process.argv.includes('--help')) {
      process.stdout.write(`${this.#usage}\n`)
      process.exit(0)
    }
    try {
      return parseArgs(config)
    } catch (error) {
      return this.refuse(error instanceof Error ? error.message : String(error))
    }
  }

  /** A whole number, `least` or more. */
  count(name: string, text: string, least: number): number {
    const value = Number(text)
    if (Number.isSafeInteger(value) && value >= least) return value
    return this.refuse(
      `--${name} must be a whole number of at least ${String(least)}, got ${JSON.stringify(text)}`,
    )
  }

  refuse(reason: string): never {
    process.stderr.write(`${reason}\n\n${this.#usage}\n`)
    process.exit(2)
  }
}
