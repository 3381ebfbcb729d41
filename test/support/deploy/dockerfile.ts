// A Dockerfile as data: its stages, each with its instructions. Enough for ours, and it throws on what
// it does not know.

export interface Instruction {
  readonly name: string
  /** Continued lines joined. */
  readonly text: string
}

export interface Stage {
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

export interface Copy {
  readonly from: string | undefined
  readonly sources: readonly string[]
  readonly to: string
}

const known = new Set([
  ...['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'LABEL', 'ENV', 'USER', 'EXPOSE'],
  ...['STOPSIGNAL', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'],
])

export function parseDockerfile(text: string): Stage[] {
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = []
  const joined = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n/g, ' ')
  for (const line of joined.split('\n').filter((each) => each.trim() !== '')) {
    const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? []
    if (!known.has(name)) throw new Error(`unknown instruction: ${line}`)
    const [base = '', , stage] = rest.split(/\s+/)
    if (name === 'FROM') stages.push({ base, name: stage, instructions: [] })
    else stages.at(-1)?.instructions.push({ name, text: rest.trim() })
  }
  return stages
}

export function parseCopy(text: string): Copy {
  const words = text.split(/\s+/)
  const from = words[0]?.startsWith('--from=') === true ? words.shift()?.slice(7) : undefined
  const to = words.pop()
  if (to === undefined || words.length === 0 || words[0]?.startsWith('--') === true) {
    throw new Error(`COPY ${text} is not understood`)
  }
  return { from, sources: words, to }
}

/** The arguments of an instruction in exec form, `["a", "b"]`. */
export function execForm(text: string): string[] {
  return JSON.parse(text.slice(text.indexOf('['))) as string[]
}

export function textOf(stage: Stage, name: string): string {
  const found = stage.instructions.findLast((instruction) => instruction.name === name)
  if (found === undefined) throw new Error(`the stage has no ${name}`)
  return found.text
}
