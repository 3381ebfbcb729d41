// The word count: ranges of words by sampled splitters; each reducer writes its part to a file of its
// own, for how long it is shows only when it is done, and the parts are put together at the end.

import { open, rm } from 'node:fs/promises'

import { wordSeparators } from '../input/block-reader.ts'
import { splitInput } from '../input/input-split.ts'
import { chooseSplitters } from '../input/range-partitioner.ts'
import { sampleInput } from '../input/sampler.ts'
import { divideTaskMemory } from '../job-plan.ts'
import { tasksModule } from './all-tasks.ts'
import { checkOutput, inspectInputs } from './job-files.ts'
import { commitPartial, createPartial, partialPath, removePartial } from './output-file.ts'
import { recordSpareBytes, type JobSettings, type PreparedJob } from './prepared-job.ts'
import { encodeSplitters, mapInput, numberOf, objectOf } from './task-input.ts'

export async function prepareWordCount(settings: JobSettings): Promise<PreparedJob> {
  const { output, maps, reduces, taskMemoryBytes } = settings
  const files = await inspectInputs(settings.inputs)
  await checkOutput(output)
  const samples = await sampleInput(files, { separators: wordSeparators, includesEmpty: false })
  const splitters = encodeSplitters(chooseSplitters(distinct(samples), reduces))
  const splits = splitInput(files, maps)
  const parts = Array.from({ length: reduces }, (_, index) => `${partialPath(output)}-${index}`)
  return {
    plan: {
      name: 'word-count',
      tasksModule,
      memory: divideTaskMemory(taskMemoryBytes),
      recordBytesMax: taskMemoryBytes + recordSpareBytes,
      stages: [
        {
          name: 'map',
          task: 'word-count-map',
          taskCount: maps,
          inputOf: (index) =>
            mapInput({ ranges: splits[index] ?? [], splitters, unitBytesMax: taskMemoryBytes }),
        },
        {
          name: 'reduce',
          task: 'word-count-reduce',
          taskCount: reduces,
          inputOf: (index) => ({ path: parts[index] ?? '' }),
        },
      ],
    },
    inputBytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
    temporaryFiles: [partialPath(output), ...parts],
    begin: () => createPartial(output),
    commit: async (results) => {
      await concatenate(parts, partialPath(output))
      await commitPartial(output)
      await removeAll(parts)
      const sum = (name: string) =>
        results.reduce<number>((total, result) => total + numberOf(objectOf(result)[name]), 0)
      const counts = { words: sum('words'), distinctWords: sum('distinctWords') }
      return { outputBytes: sum('bytes'), counts }
    },
    discard: async () => {
      await removePartial(output)
      await removeAll(parts)
    },
  }
}

/** Frequent words are no heavier than rare ones once they are counted. */
function distinct(samples: readonly Uint8Array[]): Uint8Array[] {
  const byText = new Map(samples.map((word) => [Buffer.from(word).toString('latin1'), word]))
  return [...byText.values()]
}

const copyBytes = 1024 * 1024

async function concatenate(parts: readonly string[], target: string): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(copyBytes)
  const to = await open(target, 'w')
  try {
    for (const part of parts) {
      const from = await open(part, 'r')
      try {
        for (;;) {
          const { bytesRead } = await from.read(buffer, 0, copyBytes, null)
          if (bytesRead === 0) break
          await to.writeFile(buffer.subarray(0, bytesRead))
        }
      } finally {
        await from.close()
      }
    }
  } finally {
    await to.close()
  }
}

async function removeAll(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => rm(path, { force: true })))
}
