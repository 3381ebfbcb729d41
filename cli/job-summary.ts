// The summary of a job's run, for people and as JSON.

import type { JobRun } from './job-run.ts'
import { humanBytes, humanDuration } from './text-table.ts'

export function summaryJson(run: JobRun): string {
  const { summary, output, inputBytes, counters } = run
  const json = { ...summary, inputBytes, ...output, workers: counters }
  return `${JSON.stringify(json, undefined, 2)}\n`
}

export function summaryText(run: JobRun): string {
  const { summary, output, inputBytes, counters } = run
  const seconds = Math.max(0.001, summary.durationMs / 1000)
  const counts = Object.entries(output.counts).map(([name, count]) => `${count} ${words(name)}`)
  const stages = summary.stages.map(
    (stage) => `${stage.name} ${stage.taskCount} tasks, ${stage.attempts} attempts`,
  )
  const peak = Math.max(0, ...summary.taskProcesses.map((process) => process.peakMemoryBytes))
  return [
    `job         ${summary.jobId}`,
    `input       ${humanBytes(inputBytes)}`,
    `output      ${humanBytes(output.outputBytes)}, ${counts.join(', ')}`,
    `time        ${humanDuration(summary.durationMs)}, ${humanBytes(inputBytes / seconds)}/s`,
    `tasks       ${stages.join('; ')}`,
    `attempts    ${summary.producerAttempts} of producers (${lostText(run)})`,
    ...countersText(counters),
    `memory      ${humanBytes(peak)} at most in a task process`,
    '',
  ].join('\n')
}

function countersText(counters: JobRun['counters']): readonly string[] {
  if (counters === undefined) return ["shuffled    not known: the manager can't be asked any more"]
  const { takenUncompressedBytes, takenBytes, givenBytes } = counters
  return [
    `shuffled    ${humanBytes(takenUncompressedBytes)}, compressed to ${humanBytes(takenBytes)} (workers' counters)`,
    `read        ${humanBytes(givenBytes)} (workers' counters)`,
  ]
}

function lostText({ summary }: JobRun): string {
  const lost = summary.stages.reduce((sum, stage) => sum + stage.lost, 0)
  return lost === 0 ? 'nothing was lost' : `${lost} partitions were lost and produced again`
}

/** `distinctWords` as `distinct words`. */
function words(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
