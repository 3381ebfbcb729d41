// Looks into an input at evenly spaced places, for the splitters of a range partitioner.

import { open } from 'node:fs/promises'

import type { InputFile } from './input-split.ts'

export interface SampleOptions {
  readonly separators: Uint8Array
  /** Whether a unit without bytes is one: an empty line is, an empty word is not. */
  readonly includesEmpty: boolean
  /** How many places are looked at. */
  readonly placesMax?: number
  /** Bytes read at each. */
  readonly placeBytes?: number
  /** Most units kept of all places together. */
  readonly samplesMax?: number
}

/** A sample is cut after this: a splitter may be any bytes, and they go to every map task. */
export const sampleBytesMax = 1024

const defaultPlacesMax = 256
const defaultPlaceBytes = 16 * 1024
const defaultSamplesMax = 65_536

/** Units that begin at evenly spaced places; of small inputs all. */
export async function sampleInput(
  files: readonly InputFile[],
  options: SampleOptions,
): Promise<Uint8Array[]> {
  const placeBytes = options.placeBytes ?? defaultPlaceBytes
  const total = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  const places = Math.min(options.placesMax ?? defaultPlacesMax, Math.ceil(total / placeBytes))
  const perPlace = Math.ceil((options.samplesMax ?? defaultSamplesMax) / Math.max(1, places))
  const samples: Uint8Array[] = []
  for (let place = 0; place < places; place++) {
    const found = locate(files, Math.floor((total * place) / places))
    if (found === undefined) continue
    const bytes = await readPlace(found.path, found.position, placeBytes)
    const units = unitsOf(bytes, options, found.position === 0)
    const step = Math.max(1, Math.ceil(units.length / perPlace))
    for (let index = 0; index < units.length; index += step) {
      const unit = units[index]
      if (unit !== undefined) samples.push(unit)
    }
  }
  return samples
}

function locate(
  files: readonly InputFile[],
  position: number,
): { readonly path: string; readonly position: number } | undefined {
  let start = 0
  for (const { path, sizeBytes } of files) {
    if (position < start + sizeBytes) return { path, position: position - start }
    start += sizeBytes
  }
  return undefined
}

async function readPlace(path: string, position: number, length: number): Promise<Uint8Array> {
  const file = await open(path, 'r')
  try {
    const bytes = new Uint8Array(length)
    const { bytesRead } = await file.read(bytes, 0, length, position)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** The first unit of a place is most likely cut, and the last one too: a beginning will do. */
function unitsOf(
  bytes: Uint8Array,
  { separators, includesEmpty }: SampleOptions,
  isWholeFirst: boolean,
): Uint8Array[] {
  const units: Uint8Array[] = []
  let start = 0
  let isWhole = isWholeFirst
  for (let at = 0; at <= bytes.length; at++) {
    const isEnd = at === bytes.length
    if (!isEnd && separators[bytes[at] ?? 0] === 0) continue
    const isUnit = at > start || (includesEmpty && !isEnd)
    if (isWhole && isUnit) units.push(bytes.slice(start, Math.min(at, start + sampleBytesMax)))
    isWhole = true
    start = at + 1
  }
  return units
}
