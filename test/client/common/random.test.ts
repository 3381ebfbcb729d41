import { expect, test } from 'vitest'
import { randomHex, randomInteger, realRandom } from '../../../client/common/random.ts'
import { VirtualRandom } from '../../support/virtual-random.ts'

test('the real source gives numbers in [0, 1) and as many bytes as asked', () => {
  const value = realRandom.float()
  expect(value >= 0 && value < 1).toBe(true)
  expect(realRandom.bytes(16)).toHaveLength(16)
  expect(realRandom.bytes(16).equals(realRandom.bytes(16))).toBe(false)
})

test('an integer lies below its bound and every one of them comes', () => {
  const random = new VirtualRandom(1)
  const seen = new Set(Array.from({ length: 200 }, () => randomInteger(random, 5)))
  expect([...seen].sort()).toEqual([0, 1, 2, 3, 4])
})

test('hexadecimal text has two digits a byte', () => {
  expect(randomHex(realRandom, 8)).toMatch(/^[0-9a-f]{16}$/)
})
