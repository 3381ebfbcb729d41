import fc from 'fast-check'
import { expect, test } from 'vitest'

import { WordTable } from '../../../runtime/jobs/word-table.ts'

function contents(table: WordTable): Map<string, number> {
  const found = new Map<string, number>()
  for (const { bytes, start, end, count } of table.entries()) {
    found.set(Buffer.from(bytes.slice(start, end)).toString('latin1'), count)
  }
  return found
}

test('counts words as a map does, emptied whenever it is full', () => {
  const word = fc.string({ unit: 'binary-ascii', maxLength: 6 })
  fc.assert(
    fc.property(fc.array(word, { maxLength: 300 }), (words) => {
      const table = new WordTable(2000)
      const [expected, total] = [new Map<string, number>(), new Map<string, number>()]
      const empty = () => {
        for (const [key, count] of contents(table)) total.set(key, (total.get(key) ?? 0) + count)
        table.clear()
      }
      for (const text of words) {
        expected.set(text, (expected.get(text) ?? 0) + 1)
        const bytes = Buffer.from(`<${text}>`)
        if (table.add(bytes, 1, 1 + text.length)) continue
        empty()
        expect(table.count).toBe(0)
        expect(table.add(bytes, 1, 1 + text.length)).toBe(true)
      }
      empty()
      expect(total).toEqual(expected)
    }),
  )
})

test('goes on counting known words when it is full', () => {
  const table = new WordTable(2000)
  const known = Buffer.from('known')
  table.add(known, 0, 5)
  for (let index = 0; table.add(Buffer.from(`word ${index}`), 0, 8); index++);
  expect(table.add(known, 0, 5)).toBe(true)
  expect(contents(table).get('known')).toBe(2)
})

test('refuses a word longer than all its memory', () => {
  const table = new WordTable(2000)
  expect(table.add(Buffer.alloc(5000, 1), 0, 5000)).toBe(false)
  expect(table.count).toBe(0)
})
