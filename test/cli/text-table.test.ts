import { expect, test } from 'vitest'

import { humanBytes, humanDuration, textTable } from '../../cli/text-table.ts'

test('columns are aligned, those of numbers at the right', () => {
  const text = textTable(
    ['NAME', 'BYTES', 'AGE'],
    [
      ['a', '10 B', ''],
      ['longer', '1.5 MiB', '-'],
    ],
  )
  expect(text).toBe('NAME      BYTES  AGE\na          10 B\nlonger  1.5 MiB    -\n')
})

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [64 * 1024 ** 2, '64.0 MiB'],
  [3 * 1024 ** 5, '3072.0 TiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(humanBytes(bytes)).toBe(text)
})

test.each([
  [0, '0.0 s'],
  [1234, '1.2 s'],
  [200_000, '3m 20s'],
  [7_500_000, '2h 5m'],
])('%d ms are %s', (milliseconds, text) => {
  expect(humanDuration(milliseconds)).toBe(text)
})
