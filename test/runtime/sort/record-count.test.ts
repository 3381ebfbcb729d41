import { expect, test } from 'vitest'

import { addCounts, countBytes, readCount, writeCount } from '../../../runtime/sort/record-count.ts'

test.each([0, 1, 4096, 2 ** 32, Number.MAX_SAFE_INTEGER])(
  'a count of %d is read as written',
  (count) => {
    const bytes = new Uint8Array(countBytes + 3)
    writeCount(bytes, 3, count)
    expect(readCount(bytes, 3)).toBe(count)
  },
)

test('counts are added in place', () => {
  const [a, b] = [new Uint8Array(countBytes), new Uint8Array(countBytes)]
  writeCount(a, 0, 2 ** 40)
  writeCount(b, 0, 5)
  addCounts(a, b)
  expect([readCount(a, 0), readCount(b, 0)]).toEqual([2 ** 40 + 5, 5])
})
