// How the input of a job is divided among its map tasks: by bytes, evenly, without looking inside.
// Which lines or words a part owns follows from its bounds (see block-reader.ts).

import { ok as assert } from 'node:assert/strict'

export interface InputFile {
  readonly path: string
  readonly sizeBytes: number
}

/** A part of one file: what begins in [start, end) belongs to it. */
export interface FileRange {
  readonly path: string
  readonly start: number
  readonly end: number
}

/** Divides the files into `count` lists of ranges of about the same total; some may be empty. */
export function splitInput(files: readonly InputFile[], count: number): FileRange[][] {
  assert(count >= 1, 'an input is divided into at least one part')
  const total = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  const splits: FileRange[][] = Array.from({ length: count }, () => [])
  let fileStart = 0
  for (const { path, sizeBytes } of files) {
    for (const [index, ranges] of splits.entries()) {
      const start = Math.max(0, bound(total, index, count) - fileStart)
      const end = Math.min(sizeBytes, bound(total, index + 1, count) - fileStart)
      if (start < end) ranges.push({ path, start, end })
    }
    fileStart += sizeBytes
  }
  return splits
}

function bound(total: number, index: number, count: number): number {
  return Math.floor((total * index) / count)
}
