import { expect, test } from 'vitest'
import { parseDataSetId } from '../../../client/common/ids.ts'
import { FailedPlaces } from '../../../shuffle-manager/cluster/failed-places.ts'

const dataSet = parseDataSetId('d')

test('workers are remembered by partition until an attempt is committed', () => {
  const places = new FailedPlaces()
  expect(places.of(dataSet, 1)).toEqual([])
  places.add(dataSet, 1, 7)
  places.add(dataSet, 1, 8)
  places.add(dataSet, 1, 7)
  places.add(dataSet, 2, 9)
  expect(places.of(dataSet, 1)).toEqual([8, 7])
  expect(places.of(parseDataSetId('other'), 1)).toEqual([])
  places.forget(dataSet, 1)
  expect(places.of(dataSet, 1)).toEqual([])
  expect(places.of(dataSet, 2)).toEqual([9])
})

test('of a partition the last sixteen workers are remembered', () => {
  const places = new FailedPlaces()
  for (let worker = 0; worker < 20; worker++) places.add(dataSet, 0, worker)
  expect(places.of(dataSet, 0)).toEqual(Array.from({ length: 16 }, (_, index) => index + 4))
})

test('of the partitions the last ten thousand are remembered', () => {
  const places = new FailedPlaces()
  for (let index = 0; index <= 10_000; index++) places.add(dataSet, index, 1)
  expect(places.of(dataSet, 0)).toEqual([])
  expect(places.of(dataSet, 1)).toEqual([1])
  expect(places.of(dataSet, 10_000)).toEqual([1])
})
