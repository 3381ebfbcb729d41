// The tasks of the word count: maps count the words of their part and send each with its count to
// the reducer of its range; reducers add the counts and write the words in order.

import { ok as assert } from 'node:assert/strict'
import type { ResultPartition } from '../../client/index.ts'
import { readBlocks, unitEnd, wordSeparators, type Block } from '../input/block-reader.ts'
import { RangePartitioner } from '../input/range-partitioner.ts'
import { ExternalSorter, type SortedRecords } from '../sort/external-sorter.ts'
import { countBytes, readCount, writeCount } from '../sort/record-count.ts'
import type { Task, TaskContext, TaskRegistry } from '../task.ts'
import { sortRecords } from './gate-records.ts'
import { PartWriter } from './output-file.ts'
import { decodeSplitters, objectOf, parseMapInput, stringOf } from './task-input.ts'
import { WordTable } from './word-table.ts'

/** Counts words and emits them as records of word and count. */
class WordEmitter {
  readonly #output: ResultPartition
  readonly #partitioner: RangePartitioner
  readonly #table: WordTable
  #record = new Uint8Array(1024)
  /** Words read, the same ones each time. */
  wordCount = 0

  constructor(output: ResultPartition, partitioner: RangePartitioner, memoryBytes: number) {
    this.#output = output
    this.#partitioner = partitioner
    this.#table = new WordTable(memoryBytes)
  }

  async addBlock(block: Block): Promise<void> {
    for (let start = block.start; start < block.end;) {
      const end = unitEnd(block, wordSeparators, start)
      if (end > start) {
        this.wordCount += 1
        if (!this.#table.add(block.bytes, start, end)) await this.#addSlowly(block, start, end)
      }
      start = end + 1
    }
  }

  async flush(): Promise<void> {
    for (const { bytes, start, end, count } of this.#table.entries()) {
      const wait = this.#emit(bytes, start, end, count)
      if (wait !== undefined) await wait
    }
    this.#table.clear()
  }

  async #addSlowly(block: Block, start: number, end: number): Promise<void> {
    await this.flush()
    // A word that does not even fit the empty table goes by itself.
    if (!this.#table.add(block.bytes, start, end)) await this.#emit(block.bytes, start, end, 1)
  }

  #emit(bytes: Uint8Array, start: number, end: number, count: number): Promise<void> | undefined {
    const length = end - start + countBytes
    if (this.#record.length < length) this.#record = new Uint8Array(length * 2)
    this.#record.set(bytes.subarray(start, end))
    writeCount(this.#record, end - start, count)
    const subpartition = this.#partitioner.subpartitionOf(bytes, start, end)
    return this.#output.emitRecord(this.#record.subarray(0, length), subpartition)
  }
}

/** Result: {words: how many were read}. */
const mapWords: Task = async (context) => {
  assert(context.output !== undefined, 'a map task has an output')
  const { ranges, splitters, unitBytesMax } = parseMapInput(context.input)
  const partitioner = new RangePartitioner({
    splitters: decodeSplitters(splitters),
    spreadsEqual: false,
  })
  const emitter = new WordEmitter(context.output, partitioner, context.memoryBytes)
  let readBytes = 0
  for (const range of ranges) {
    const options = { range, separators: wordSeparators, unitName: 'word', unitBytesMax }
    for await (const block of readBlocks(options)) {
      context.signal.throwIfAborted()
      await emitter.addBlock(block)
      readBytes += block.end - block.start
      context.progress(readBytes)
    }
  }
  await emitter.flush()
  return { words: emitter.wordCount }
}

/** Input: {path}: the file for its part. Result: {distinctWords, words, bytes}. */
const countWords: Task = async (context) => {
  assert(context.gate !== undefined, 'a reduce task has a gate')
  const path = stringOf(objectOf(context.input)['path'])
  const sorter = new ExternalSorter({
    memoryBytes: context.memoryBytes,
    directory: context.spillDirectory,
    name: context.spillName,
    hasCounts: true,
  })
  try {
    await sortRecords(context.gate, sorter, context)
    return await writeWords(sorter.finish(), path, context.signal)
  } finally {
    sorter.close()
  }
}

export const wordCountTasks = {
  'word-count-map': mapWords,
  'word-count-reduce': countWords,
} satisfies TaskRegistry

async function writeWords(records: SortedRecords, path: string, signal: TaskContext['signal']) {
  const writer = await PartWriter.create(path)
  try {
    let [distinctWords, words] = [0, 0]
    const sink = {
      key: (bytes: Uint8Array, from: number, to: number) => {
        writer.put(bytes, from, to)
      },
      end: (count: Uint8Array | undefined) => {
        const value = count === undefined ? 1 : readCount(count, 0)
        const text = Buffer.from(`\t${value}\n`)
        writer.put(text, 0, text.length)
        distinctWords += 1
        words += value
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
    return { distinctWords, words, bytes: writer.position }
  } finally {
    await writer.close()
  }
}
