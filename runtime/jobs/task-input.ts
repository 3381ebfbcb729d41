// Inputs and results of the jobs' tasks, checked where they come out of a message.

import { ShuffleError } from '../../client/index.ts'
import type { FileRange } from '../input/input-split.ts'
import type { JsonValue } from '../task.ts'

/** What a map task of either job gets. */
export interface MapInput {
  readonly ranges: readonly FileRange[]
  /** Splitters in base64: any bytes. */
  readonly splitters: readonly string[]
  readonly unitBytesMax: number
}

export function mapInput(input: MapInput): JsonValue {
  return {
    ranges: input.ranges.map(({ path, start, end }) => ({ path, start, end })),
    splitters: input.splitters,
    unitBytesMax: input.unitBytesMax,
  }
}

export function parseMapInput(value: JsonValue): MapInput {
  const fields = objectOf(value)
  return {
    ranges: listOf(fields['ranges']).map((range) => {
      const { path, start, end } = objectOf(range)
      return { path: stringOf(path), start: numberOf(start), end: numberOf(end) }
    }),
    splitters: listOf(fields['splitters']).map(stringOf),
    unitBytesMax: numberOf(fields['unitBytesMax']),
  }
}

export function decodeSplitters(texts: readonly string[]): Uint8Array[] {
  return texts.map((text) => Buffer.from(text, 'base64'))
}

export function encodeSplitters(splitters: readonly Uint8Array[]): string[] {
  return splitters.map((splitter) => Buffer.from(splitter).toString('base64'))
}

export function objectOf(value: JsonValue | undefined): Readonly<Record<string, JsonValue>> {
  if (typeof value !== 'object' || value === null || isList(value)) throw invalid('an object')
  return value
}

export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (value === undefined || !isList(value)) throw invalid('a list')
  return value
}

export function numberOf(value: JsonValue | undefined): number {
  if (typeof value !== 'number') throw invalid('a number')
  return value
}

export function stringOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw invalid('a text')
  return value
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

function invalid(expected: string): ShuffleError {
  return new ShuffleError('INVALID_ARGUMENT', `a task's input or result should have ${expected}`)
}
