// The tasks of the sort: maps send each line to the reducer of its range, reducers sort theirs and
// write it at its place in the output.

import { ok as assert } from 'node:assert/strict'
import { ShuffleError } from '../../client/index.ts'
import { lineSeparators, readBlocks, unitEnd } from '../input/block-reader.ts'
import { RangePartitioner } from '../input/range-partitioner.ts'
import { ExternalSorter, type SortedRecords } from '../sort/external-sorter.ts'
import type { Task, TaskContext, TaskRegistry } from '../task.ts'
import { sortRecords } from './gate-records.ts'
import { PartWriter } from './output-file.ts'
import { decodeSplitters, numberOf, objectOf, parseMapInput, stringOf } from './task-input.ts'

const newline = 0x0a

/** Result: {bytes: of each reducer, newlines counted}. */
const mapLines: Task = async (context) => {
  const { output, taskIndex, signal } = context
  assert(output !== undefined, 'a map task has an output')
  const { ranges, splitters, unitBytesMax } = parseMapInput(context.input)
  const partitioner = new RangePartitioner({
    splitters: decodeSplitters(splitters),
    spreadsEqual: true,
    turn: taskIndex,
  })
  const bytesOf = Array.from({ length: context.subpartitionCount }, () => 0)
  let readBytes = 0
  for (const range of ranges) {
    const options = { range, separators: lineSeparators, unitName: 'line', unitBytesMax }
    for await (const block of readBlocks(options)) {
      signal.throwIfAborted()
      for (let start = block.start; start < block.end;) {
        const end = unitEnd(block, lineSeparators, start)
        const subpartition = partitioner.subpartitionOf(block.bytes, start, end)
        const wait = output.emitRecord(block.bytes.subarray(start, end), subpartition)
        if (wait !== undefined) await wait
        bytesOf[subpartition] = (bytesOf[subpartition] ?? 0) + end - start + 1
        start = end + 1
      }
      readBytes += block.end - block.start
      context.progress(readBytes)
    }
  }
  return { bytes: bytesOf }
}

/** Input: {path, start, bytes}: where its part of the output lies. Result: {lines, bytes}. */
const sortLines: Task = async (context) => {
  assert(context.gate !== undefined, 'a reduce task has a gate')
  const fields = objectOf(context.input)
  const [path, start] = [stringOf(fields['path']), numberOf(fields['start'])]
  const expected = numberOf(fields['bytes'])
  const sorter = new ExternalSorter({
    memoryBytes: context.memoryBytes,
    directory: context.spillDirectory,
    name: context.spillName,
    hasCounts: false,
  })
  try {
    await sortRecords(context.gate, sorter, context)
    const { lines, bytes } = await writeLines(sorter.finish(), { path, start }, context.signal)
    if (bytes !== expected) {
      throw new ShuffleError(
        'COUNT_MISMATCH',
        `the maps sent ${expected} bytes to this reducer and ${bytes} came out`,
      )
    }
    return { lines, bytes }
  } finally {
    sorter.close()
  }
}

export const sortTasks = { 'sort-map': mapLines, 'sort-reduce': sortLines } satisfies TaskRegistry

async function writeLines(
  records: SortedRecords,
  target: { readonly path: string; readonly start: number },
  signal: TaskContext['signal'],
): Promise<{ readonly lines: number; readonly bytes: number }> {
  const writer = await PartWriter.open(target.path, target.start)
  try {
    let lines = 0
    const sink = {
      key: (bytes: Uint8Array, from: number, to: number) => {
        writer.put(bytes, from, to)
      },
      end: () => {
        writer.putByte(newline)
        lines += 1
      },
    }
    while (!records.isAtEnd) {
      records.next(sink)
      if (writer.isFull) {
        signal.throwIfAborted()
        await writer.drain()
      }
    }
    await writer.drain()
    return { lines, bytes: writer.position - target.start }
  } finally {
    await writer.close()
  }
}
