import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteCountAssembler, byteCountPages } from '../../../client/protocol/byte-counts.ts'
import { controlBodyLengthMax } from '../../../client/protocol/limits.ts'
import { wireJsonFile } from './support/wire-json.ts'

function page(firstSubpartition: number, counts: readonly number[], isLast = true) {
  return { firstSubpartition, isLast, body: byteCountPages(counts)[0]!.body }
}

describe('byte counts', () => {
  it('are the golden vectors', () => {
    for (const { counts, bodies } of wireJsonFile.byteCounts) {
      const pages = byteCountPages(counts.map(Number))
      expect(pages.map(({ body }) => Buffer.from(body).toString('hex'))).toEqual(bodies)
    }
  })

  it('come back from their pages', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeNat(), { maxLength: 50 }), (counts) => {
        const assembler = new ByteCountAssembler(counts.length)
        for (const each of byteCountPages(counts)) assembler.addPage(each)
        expect(assembler.isComplete).toBe(true)
        expect(Array.from(assembler.counts)).toEqual(counts)
      }),
    )
  })

  it('of very many subpartitions take several pages, each within the limit of a body', () => {
    const counts = Float64Array.from({ length: 200_001 }, (_, index) => index)
    const pages = byteCountPages(counts)
    expect(pages.map(({ isLast }) => isLast)).toEqual([false, false, false, true])
    const assembler = new ByteCountAssembler(counts.length)
    for (const each of pages) {
      expect(each.body.length).toBeLessThanOrEqual(controlBodyLengthMax)
      expect(assembler.isComplete).toBe(false)
      assembler.addPage(each)
    }
    expect(assembler.counts).toEqual(counts)
  })

  it('of no subpartition are one empty page', () => {
    const pages = byteCountPages([])
    expect(pages).toHaveLength(1)
    const assembler = new ByteCountAssembler(0)
    assembler.addPage(pages[0]!)
    expect(assembler.isComplete).toBe(true)
  })
})

describe('ByteCountAssembler', () => {
  it.each([
    ['a page out of order', [page(1, [1])]],
    ['a page that comes twice', [page(0, [1], false), page(0, [1])]],
    ['more counts than subpartitions', [page(0, [1, 2, 3])]],
    ['a last page with counts missing', [page(0, [1])]],
    ['a page after the last', [page(0, [1, 2]), page(2, [])]],
    ['a body that is no whole number of counts', [{ ...page(0, [1]), body: new Uint8Array(7) }]],
    [
      'a count above 2^53 - 1',
      [{ ...page(0, [1]), body: Uint8Array.from([0, 0x20, 0, 0, 0, 0, 0, 0]) }],
    ],
  ])('refuses %s', (_, pages) => {
    const assembler = new ByteCountAssembler(2)
    expect(() => {
      for (const each of pages) assembler.addPage(each)
    }).toThrow(expect.objectContaining({ code: 'PROTOCOL' }) as Error)
  })
})
