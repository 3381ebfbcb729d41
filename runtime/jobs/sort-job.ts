// The sort: ranges of lines by sampled splitters, so that the reducers' parts follow each other in
// the output. The maps' results say how long each part is, so all are written at the same time.

import { lineSeparators } from '../input/block-reader.ts'
import { splitInput } from '../input/input-split.ts'
import { chooseSplitters } from '../input/range-partitioner.ts'
import { sampleInput } from '../input/sampler.ts'
import { divideTaskMemory } from '../job-plan.ts'
import type { JsonValue } from '../task.ts'
import { tasksModule } from './all-tasks.ts'
import { checkOutput, inspectInputs } from './job-files.ts'
import { commitPartial, createPartial, partialPath, removePartial } from './output-file.ts'
import { recordSpareBytes, type JobSettings, type PreparedJob } from './prepared-job.ts'
import { encodeSplitters, listOf, mapInput, numberOf, objectOf } from './task-input.ts'

export async function prepareSort(settings: JobSettings): Promise<PreparedJob> {
  const { output, maps, reduces, taskMemoryBytes } = settings
  const files = await inspectInputs(settings.inputs)
  await checkOutput(output)
  const samples = await sampleInput(files, { separators: lineSeparators, includesEmpty: true })
  const splitters = encodeSplitters(chooseSplitters(samples, reduces))
  const splits = splitInput(files, maps)
  return {
    plan: {
      name: 'sort',
      tasksModule,
      memory: divideTaskMemory(taskMemoryBytes),
      recordBytesMax: taskMemoryBytes + recordSpareBytes,
      stages: [
        {
          name: 'map',
          task: 'sort-map',
          taskCount: maps,
          inputOf: (index) =>
            mapInput({ ranges: splits[index] ?? [], splitters, unitBytesMax: taskMemoryBytes }),
        },
        {
          name: 'reduce',
          task: 'sort-reduce',
          taskCount: reduces,
          inputOf: (index, results) => ({ path: partialPath(output), ...partOf(index, results) }),
        },
      ],
    },
    inputBytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
    temporaryFiles: [partialPath(output)],
    begin: () => createPartial(output),
    commit: async (results) => {
      await commitPartial(output)
      const sum = (name: string) =>
        results.reduce<number>((total, result) => total + numberOf(objectOf(result)[name]), 0)
      return { outputBytes: sum('bytes'), counts: { lines: sum('lines') } }
    },
    discard: () => removePartial(output),
  }
}

/** Where a reducer's part of the output begins, and its length, from what the maps counted. */
export function partOf(
  reducer: number,
  mapResults: readonly JsonValue[],
): { readonly start: number; readonly bytes: number } {
  let [start, bytes] = [0, 0]
  for (const result of mapResults) {
    for (const [index, value] of listOf(objectOf(result)['bytes']).entries()) {
      if (index < reducer) start += numberOf(value)
      if (index === reducer) bytes += numberOf(value)
    }
  }
  return { start, bytes }
}
