import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import { DataSetFacts, KeyGroup, id, port } from '../../../client/manager/schemas.ts'

const accepts = (schema: TSchema, value: unknown) => Compile(schema).Check(value)

test('ids are 1 to 200 printable characters without a space', () => {
  for (const text of ['a', '~', 'x'.repeat(200)]) expect(accepts(id('x'), text)).toBe(true)
  for (const text of ['', ' ', 'a b', 'ü', 'x'.repeat(201), 5]) {
    expect(accepts(id('x'), text)).toBe(false)
  }
})

test('numbers keep to their range', () => {
  expect([0, 1, 65_535, 65_536, 1.5].map((value) => accepts(port('x'), value))).toEqual([
    false,
    true,
    true,
    false,
    false,
  ])
})

test('a list has at most ten thousand rows', () => {
  const group = (count: number) => ({
    dataSetId: 'd',
    attemptPrefix: '',
    partitionIndices: Array.from({ length: count }, () => 0),
    attempts: [],
  })
  expect(accepts(KeyGroup, group(10_000))).toBe(true)
  expect(accepts(KeyGroup, group(10_001))).toBe(false)
})

test('fields that are not known are let be', () => {
  const facts = { dataSetId: 'd', totalPartitions: 1, subpartitionCount: 1, isBroadcast: false }
  expect(accepts(DataSetFacts, { ...facts, novelty: 1 })).toBe(true)
  expect(accepts(DataSetFacts, { ...facts, totalPartitions: 0 })).toBe(false)
})
