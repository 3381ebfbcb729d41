// Shows how far a job is: a line that moves on a terminal, now and then a line elsewhere.

import type { StageSummary } from '../runtime/job-result.ts'
import type { CommandContext } from './command.ts'
import { humanBytes } from './text-table.ts'

const terminalIntervalMs = 200
const otherIntervalMs = 5000

/** Shows `describe()` until the returned function is called. */
export function showProgress(
  describe: () => string,
  context: Pick<CommandContext, 'isTerminal' | 'note'>,
): () => void {
  let last = ''
  const show = () => {
    const line = describe()
    if (line === last) return
    last = line
    context.note(context.isTerminal ? `\r\u001b[2K${line}` : `${line}\n`)
  }
  const timer = setInterval(show, context.isTerminal ? terminalIntervalMs : otherIntervalMs)
  return () => {
    clearInterval(timer)
    show()
    if (context.isTerminal) context.note('\n')
  }
}

/** `map 3 of 8, 12.0 MiB; reduce waits`. */
export function describeStages(stages: readonly StageSummary[]): string {
  return stages
    .map((stage) => {
      if (stage.attempts === 0) return `${stage.name} waits`
      const lost = stage.lost > 0 ? `, ${stage.lost} lost and produced again` : ''
      return `${stage.name} ${stage.finished} of ${stage.taskCount}, ${humanBytes(stage.progressBytes)}${lost}`
    })
    .join('; ')
}
