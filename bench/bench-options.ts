// The bench's command line.

import { parseArgs } from 'node:util'

export interface BenchOptions {
  /** Letters of the workloads that run. */
  readonly only: readonly string[]
  /** Of these, cases whose name holds the text, or one of whose ways of reading does. */
  readonly caseText: string
  readonly rounds: number
  readonly isQuick: boolean
  readonly bytes: number
  /** Small shuffles of a round. */
  readonly jobs: number
  readonly mode: 'direct' | 'buffered'
  readonly isProfiled: boolean
  readonly directory: string | undefined
  readonly output: string
  readonly plots: string | undefined
  readonly memory: string
  readonly isHelp: boolean
}

export const workloadLetters: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
const roundsMin = 5

export const usage = `npm run bench -- [options]

  --quick             a fifteenth of the data, two rounds: two minutes for a look, nothing to quote
  --only a,b,c        these workloads alone
  --case TEXT         of them only cases with the text in their name
  --rounds N          measured rounds of each case (5)
  --bytes N           payload bytes of a round (1500000000)
  --jobs N            small shuffles of a round (4000)
  --mode M            direct or buffered files, of the worker and of its references (direct)
  --memory SIZE       the worker's pool (256mb)
  --profile           CPU profiles of all processes, beside the output
  --directory PATH    where data go, on the disk to be measured (a new one below the system's temporary one)
  --output FILE       results as JSON (bench-result.json)
  --plots DIRECTORY   draws SVG plots there
`

/** Throws an Error with what is wrong. */
export function parseBenchOptions(argv: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...argv],
    strict: true,
    options: {
      only: { type: 'string' },
      case: { type: 'string', default: '' },
      rounds: { type: 'string' },
      bytes: { type: 'string' },
      jobs: { type: 'string' },
      mode: { type: 'string', default: 'direct' },
      memory: { type: 'string', default: '256mb' },
      directory: { type: 'string' },
      output: { type: 'string', default: 'bench-result.json' },
      plots: { type: 'string' },
      quick: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const isQuick = values.quick
  if (values.mode !== 'direct' && values.mode !== 'buffered') {
    throw new Error(`--mode must be direct or buffered, got ${values.mode}`)
  }
  return {
    only: lettersOf(values.only),
    caseText: values.case,
    rounds: numberOf('rounds', values.rounds, isQuick ? 2 : roundsMin),
    bytes: numberOf('bytes', values.bytes, isQuick ? 100_000_000 : 1_500_000_000),
    jobs: numberOf('jobs', values.jobs, isQuick ? 500 : 4000),
    mode: values.mode,
    memory: values.memory,
    directory: values.directory,
    output: values.output,
    plots: values.plots,
    isQuick,
    isProfiled: values.profile,
    isHelp: values.help,
  }
}

function lettersOf(text: string | undefined): readonly string[] {
  if (text === undefined) return workloadLetters
  const letters = text.split(',').map((letter) => letter.trim())
  const wrong = letters.find((letter) => !workloadLetters.includes(letter))
  if (wrong === undefined) return letters
  throw new Error(`--only names workload ${JSON.stringify(wrong)}; there are a to j`)
}

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new Error(`--${name} must be a whole number above 0, got ${text}`)
}
