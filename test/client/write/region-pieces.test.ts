import { describe, expect, test } from 'vitest'
import {
  recordPieces,
  regionPieces,
  type PieceSource,
} from '../../../client/write/region-pieces.ts'
import type { SortedRegion, SortedRun } from '../../../client/write/sort-buffer.ts'

function regionOf(runs: readonly SortedRun[]): SortedRegion {
  let next = 0
  return {
    isBroadcast: false,
    recordCount: 1,
    runs: () => runs,
    copy: (_run, target, length) => {
      for (let index = 0; index < length; index += 1) target[index] = next++
    },
    release: () => undefined,
  }
}

function shown(source: PieceSource) {
  return [...source.pieces()].map((piece) => {
    const target = new Uint8Array(piece.length)
    piece.fill(target)
    return [piece.subpartition, piece.type, piece.isLastOfRun, [...target].join()]
  })
}

describe('the pieces of a region', () => {
  test('cut each run at the payload limit and at its events', () => {
    const source = regionPieces(
      regionOf([
        { subpartition: 1, byteCount: 7, events: [] },
        {
          subpartition: 4,
          byteCount: 4,
          events: [
            { afterBytes: 0, code: 1, bytes: Buffer.of(100) },
            { afterBytes: 4, code: 2, bytes: Buffer.of() },
            { afterBytes: 4, code: 3, bytes: Buffer.of(102, 103) },
          ],
        },
      ]),
      3,
    )
    expect(source.boundBytes).toBe(7 + 4 + 3 + 8 * 16)
    expect(shown(source)).toEqual([
      [1, 0, false, '0,1,2'],
      [1, 0, false, '3,4,5'],
      [1, 0, true, '6'],
      [4, 1, false, '100'],
      [4, 0, false, '7,8,9'],
      [4, 0, false, '10'],
      [4, 2, false, ''],
      [4, 3, true, '102,103'],
    ])
  })

  test('a large record is framed and cut straight from its memory', () => {
    const place = { subpartition: 5, isBroadcast: true }
    const source = recordPieces(Buffer.of(1, 2, 3, 4, 5, 6, 7), place, 6)
    expect(source.isBroadcast).toBe(true)
    expect(source.boundBytes).toBe(11 + 2 * 16)
    expect(shown(source)).toEqual([
      [5, 0, false, '0,0,0,7,1,2'],
      [5, 0, true, '3,4,5,6,7'],
    ])
  })
})
