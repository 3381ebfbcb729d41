import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RecordAssembler } from '../../../client/read/record-assembler.ts'

function framed(records: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    records.flatMap((record) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(record.length)
      return [length, record]
    }),
  )
}

/** The records that `assembler` finds in one entry. */
function found(assembler: RecordAssembler, entry: Uint8Array): Uint8Array[] {
  const { head, start, recordCount, byteCount } = assembler.add(entry)
  const records = head === undefined ? [] : [head]
  let position = start
  while (records.length < recordCount) {
    const length = Buffer.from(entry).readUInt32BE(position)
    records.push(entry.slice(position + 4, position + 4 + length))
    position += 4 + length
  }
  expect(records.reduce((sum, { length }) => sum + length, 0)).toBe(byteCount)
  return records
}

describe('a record assembler', () => {
  test('finds the same records however the run is cut into entries', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }),
        (records, cuts) => {
          const assembler = new RecordAssembler({ recordBytesMax: 100 })
          const run = framed(records)
          const all: Uint8Array[] = []
          for (let done = 0, turn = 0; done < run.length; turn += 1) {
            const end = done + (cuts[turn % cuts.length] ?? 1)
            all.push(...found(assembler, run.subarray(done, end)))
            done = end
          }
          expect(all.map((record) => Buffer.from(record))).toEqual(
            records.map((record) => Buffer.from(record)),
          )
          expect(assembler.isWhole).toBe(true)
        },
      ),
    )
  })

  test('every cut of two records, byte by byte', () => {
    const records = [Buffer.from('first'), Buffer.from('')]
    const run = framed(records)
    for (let cut = 0; cut <= run.length; cut += 1) {
      const assembler = new RecordAssembler({ recordBytesMax: 100 })
      const all = [
        ...found(assembler, run.subarray(0, cut)),
        ...found(assembler, run.subarray(cut)),
      ]
      expect(all.map((record) => Buffer.from(record).toString())).toEqual(['first', ''])
    }
  })

  test('knows when a record has begun and not ended, and forgets it on reset', () => {
    const assembler = new RecordAssembler({ recordBytesMax: 100 })
    found(assembler, Buffer.of(0, 0))
    expect(assembler.isWhole).toBe(false)
    found(assembler, Buffer.of(0, 9, 1))
    expect(assembler.isWhole).toBe(false)
    assembler.reset()
    expect(assembler.isWhole).toBe(true)
    expect(found(assembler, framed([Buffer.of(7)])).map((record) => [...record])).toEqual([[7]])
  })

  test('refuses a record that is longer than allowed before it takes memory for it', () => {
    const assembler = new RecordAssembler({ recordBytesMax: 100 })
    expect(() => assembler.add(Buffer.of(0xff, 0xff, 0xff, 0xff, 1))).toThrow(/longer than the 100/)
  })

  test('keeps no reference to the entry', () => {
    const assembler = new RecordAssembler({ recordBytesMax: 100 })
    const entry = Buffer.from([0, 0, 0, 2, 65])
    found(assembler, entry)
    entry.fill(0)
    expect(found(assembler, Buffer.of(66)).map((record) => [...record])).toEqual([[65, 66]])
  })
})
