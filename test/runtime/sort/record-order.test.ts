import fc from 'fast-check'
import { expect, test } from 'vitest'

import { compareBytes, keyPrefix } from '../../../runtime/sort/record-order.ts'

const bytes = fc.uint8Array({ maxLength: 10 })

test('ranges are ordered as Buffer.compare orders them', () => {
  fc.assert(
    fc.property(bytes, bytes, fc.nat({ max: 3 }), (a, b, offset) => {
      const shifted = Buffer.concat([Buffer.alloc(offset, 7), b, Buffer.of(1)])
      const order = compareBytes(a, 0, a.length, shifted, offset, offset + b.length)
      expect(Math.sign(order)).toBe(Buffer.compare(a, b))
    }),
  )
})

test('a prefix never orders two keys against their bytes', () => {
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      const difference = keyPrefix(a, 0, a.length) - keyPrefix(b, 0, b.length)
      if (difference !== 0) expect(Math.sign(difference)).toBe(Buffer.compare(a, b))
    }),
  )
})

test('a prefix is unsigned and pads with zeros', () => {
  expect(keyPrefix(Buffer.of(255, 255, 255, 255, 1), 0, 5)).toBe(0xffffffff)
  expect(keyPrefix(Buffer.of(1, 2), 0, 2)).toBe(0x01020000)
  expect(keyPrefix(Buffer.of(1, 2), 1, 1)).toBe(0)
})
