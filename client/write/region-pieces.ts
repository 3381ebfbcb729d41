// How a region is cut into entries: each run in pieces of at most the payload limit, an event always
// a piece of its own. Pure planning over what the sort buffer holds; the packer fills the pieces.

import type { SortedRegion, SortedRun } from './sort-buffer.ts'
import { entryHeaderLength, entryTypes } from '../protocol/entry.ts'

/** One entry before compression. Filled once, in order. */
export interface Piece {
  readonly subpartition: number
  /** Of `entryTypes`. */
  readonly type: number
  /** Bytes of its payload. */
  readonly length: number
  readonly isLastOfRun: boolean
  /** Writes the payload at the beginning of `target`. */
  readonly fill: (target: Uint8Array) => void
}

/** The pieces of a region and the most that they take as entries. */
export interface PieceSource {
  readonly isBroadcast: boolean
  readonly boundBytes: number
  pieces(): Iterable<Piece>
}

interface Cut {
  readonly type: number
  readonly length: number
  readonly event: Uint8Array | undefined
}

export function regionPieces(region: SortedRegion, payloadBytesMax: number): PieceSource {
  let boundBytes = 0
  for (const run of region.runs()) {
    for (const cut of cutsOf(run, payloadBytesMax)) boundBytes += entryHeaderLength + cut.length
  }
  return {
    isBroadcast: region.isBroadcast,
    boundBytes,
    *pieces() {
      for (const run of region.runs()) {
        const cuts = [...cutsOf(run, payloadBytesMax)]
        for (const [index, cut] of cuts.entries()) {
          yield {
            subpartition: run.subpartition,
            type: cut.type,
            length: cut.length,
            isLastOfRun: index === cuts.length - 1,
            fill: (target) => {
              if (cut.event === undefined) region.copy(run, target, cut.length)
              else target.set(cut.event)
            },
          }
        }
      }
    },
  }
}

/** A record larger than the sort buffer, as a region of its own, straight from the caller's memory. */
export function recordPieces(
  record: Uint8Array,
  place: { readonly subpartition: number; readonly isBroadcast: boolean },
  payloadBytesMax: number,
): PieceSource {
  const framing = Buffer.alloc(4)
  framing.writeUInt32BE(record.length)
  const byteCount = framing.length + record.length
  const pieceCount = Math.ceil(byteCount / payloadBytesMax)
  return {
    isBroadcast: place.isBroadcast,
    boundBytes: byteCount + pieceCount * entryHeaderLength,
    *pieces() {
      for (let index = 0; index < pieceCount; index += 1) {
        const start = index * payloadBytesMax
        const end = Math.min(byteCount, start + payloadBytesMax)
        yield {
          subpartition: place.subpartition,
          type: entryTypes.data,
          length: end - start,
          isLastOfRun: index === pieceCount - 1,
          fill: (target) => {
            if (index > 0) {
              target.set(record.subarray(start - framing.length, end - framing.length))
              return
            }
            target.set(framing)
            target.set(record.subarray(0, end - framing.length), framing.length)
          },
        }
      }
    },
  }
}

function* cutsOf(run: SortedRun, payloadBytesMax: number): Generator<Cut, void, undefined> {
  let done = 0
  for (const event of run.events) {
    yield* dataCuts(event.afterBytes - done, payloadBytesMax)
    done = event.afterBytes
    yield { type: event.code, length: event.bytes.length, event: event.bytes }
  }
  yield* dataCuts(run.byteCount - done, payloadBytesMax)
}

function* dataCuts(byteCount: number, payloadBytesMax: number): Generator<Cut, void, undefined> {
  for (let left = byteCount; left > 0; left -= payloadBytesMax) {
    yield { type: entryTypes.data, length: Math.min(left, payloadBytesMax), event: undefined }
  }
}
