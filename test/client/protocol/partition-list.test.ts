import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAttemptId, parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import { controlBodyLengthMax, partitionListEntriesMax } from '../../../client/protocol/limits.ts'
import {
  decodePartitionList,
  encodePartitionList,
  fromBeginning,
  type PartitionListEntry,
  type PartitionListPage,
} from '../../../client/protocol/partition-list.ts'
import { wireJsonFile } from './support/wire-json.ts'

function decodeAll(pages: readonly PartitionListPage[]): PartitionListEntry[] {
  return pages.flatMap(({ body, partitionCount }) => decodePartitionList(body, partitionCount))
}

const idText = fc.oneof(
  fc.stringMatching(/^[\x21-\x7e]{1,200}$/),
  fc.constantFrom('attempt-1-0', 'attempt-1-1', 'attempt-12-0', 'a'),
)
const uint32 = fc.nat(0xffff_ffff)

const entries: fc.Arbitrary<PartitionListEntry[]> = fc
  .array(
    fc.record({
      gap: fc.constantFrom(1, 1, 1, 2, 100),
      key: fc.record({
        jobId: idText.map(parseJobId),
        dataSetId: idText.map(parseDataSetId),
        partitionIndex: fc.oneof(uint32, fc.nat(3)),
        attemptId: idText.map(parseAttemptId),
      }),
      range: fc.oneof(
        fc.constant([0, 0]),
        fc.tuple(uint32, uint32).map((pair) => pair.sort((a, b) => a - b)),
      ),
      start: fc.oneof(
        fc.constant(fromBeginning),
        fc.record({ regionIndex: uint32, subpartition: uint32, byteOffset: fc.maxSafeNat() }),
      ),
      isPending: fc.boolean(),
    }),
    { maxLength: 30 },
  )
  .map((records) => {
    let index = -1
    return records.map(({ gap, key, range, start, isPending }) => {
      index += gap
      const [firstSubpartition = 0, lastSubpartition = 0] = range
      return { index, key, firstSubpartition, lastSubpartition, start, isPending }
    })
  })

function stage(count: number): PartitionListEntry[] {
  const graph = '0123456789abcdef'.repeat(4)
  return Array.from({ length: count }, (_, index) => ({
    index,
    key: {
      jobId: parseJobId(`application.${graph.slice(0, 32)}`),
      dataSetId: parseDataSetId(graph),
      partitionIndex: index,
      attemptId: parseAttemptId(`${graph}_${String(index)}_0`),
    },
    firstSubpartition: 17,
    lastSubpartition: 17,
    start: fromBeginning,
    isPending: false,
  }))
}

describe('partition list', () => {
  it('comes back from its pages', () => {
    fc.assert(
      fc.property(entries, (list) => {
        expect(decodeAll(encodePartitionList(list))).toEqual(list)
      }),
    )
  })

  it('is the golden vectors', () => {
    for (const vector of wireJsonFile.partitionLists) {
      const list = vector.bodies.flatMap((body) =>
        decodePartitionList(Buffer.from(body, 'hex'), vector.entries.length),
      )
      const asJson = list.map((entry) => ({
        ...entry,
        start: { ...entry.start, byteOffset: String(entry.start.byteOffset) },
      }))
      expect(asJson).toEqual(vector.entries)
      expect(
        encodePartitionList(list).map(({ body }) => Buffer.from(body).toString('hex')),
      ).toEqual(vector.bodies)
    }
  })

  it('of a stage of 10,000 producers takes ten bytes each, in pages within the limits', () => {
    const list = stage(10_000)
    const pages = encodePartitionList(list)
    const bytes = pages.reduce((sum, { body }) => sum + body.length, 0)
    expect(bytes).toBeLessThan(10 * list.length)
    for (const { body, partitionCount } of pages) {
      expect(body.length).toBeLessThanOrEqual(controlBodyLengthMax)
      expect(partitionCount).toBeLessThanOrEqual(partitionListEntriesMax)
    }
    expect(decodeAll(pages)).toEqual(list)
  })

  it('of nothing has no page', () => {
    expect(encodePartitionList([])).toEqual([])
  })

  it('makes each page readable alone', () => {
    const pages = encodePartitionList(stage(10_000))
    expect(pages.length).toBeGreaterThan(1)
    const last = pages.at(-1)!
    const list = decodePartitionList(last.body, last.partitionCount)
    expect(list.at(-1)).toEqual(stage(10_000).at(-1))
  })

  it.each(wireJsonFile.refusedPartitionLists)('refuses $about', ({ body, partitionCount }) => {
    expect(() => decodePartitionList(Buffer.from(body, 'hex'), partitionCount)).toThrow(
      expect.objectContaining({ code: 'PROTOCOL' }) as Error,
    )
  })

  it('throws nothing but PROTOCOL for whatever comes', () => {
    fc.assert(
      fc.property(entries, fc.nat(), fc.nat(255), fc.nat(40), (list, at, to, count) => {
        const [page] = encodePartitionList(list)
        if (page === undefined) return
        const body = Uint8Array.from(page.body)
        body[at % body.length] = to
        try {
          decodePartitionList(body, count)
        } catch (error) {
          expect(error).toMatchObject({ name: 'ShuffleError', code: 'PROTOCOL' })
        }
      }),
      { numRuns: 500 },
    )
  })

  it('refuses a first entry that leaves out an id', () => {
    // Only index and range follow the bits: all ids as before, and there is none before.
    expect(() => decodePartitionList(Uint8Array.of(0), 1)).toThrow('has no valid key')
  })

  it('refuses a partition index that would pass 2^32', () => {
    const [page] = encodePartitionList([
      { ...stage(1)[0]!, key: { ...stage(1)[0]!.key, partitionIndex: 0xffff_ffff } },
    ])
    expect(() => decodePartitionList(Buffer.concat([page!.body, Buffer.from([0])]), 2)).toThrow(
      'past 2^32 - 1',
    )
  })
})
