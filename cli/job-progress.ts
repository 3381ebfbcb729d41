// Shows how far a job is: a line that moves on a terminal, now and then a line elsewhere.

import { isShuffleError } from '../client/index.ts'
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

/** Said for as long as it lasts, in words that stay the same: one line, not one for each try. */
export function describeWait(error: Error | undefined): string {
  if (error === undefined) return ''
  const what = isShuffleError(error, 'NO_MANAGER')
    ? 'no shuffle manager answers: is it running? The job goes on when it is back'
    : error.message
  return `; waits for a place for its output: ${what}`
}
