import { expect, it } from 'vitest'
import {
  checkStoreOptions,
  defaultStoreOptions,
  type DataStoreOptions,
} from '../../../shuffle-worker/storage/data-store-options.ts'

const directories = [{ path: '/a' }, { path: '/b' }]

it('the default options are consistent', () => {
  checkStoreOptions(defaultStoreOptions, directories)
})

it.each<[Partial<DataStoreOptions>, RegExp]>([
  [{ diskFailedAfterMs: 15_000, probeIntervalMs: 10_000 }, /twice the probe interval/],
  [{ diskFailedAfterMs: 25_000, diskOperationTimeoutMs: 30_000 }, /operation timeout/],
  [{ smallPartitionBytesMax: 2 ** 21 }, /not small/],
  [{ segmentSizeBytes: 2 ** 27 }, /segment/],
])('the options %o are refused by name', (options, message) => {
  expect(() => {
    checkStoreOptions({ ...defaultStoreOptions, ...options }, directories)
  }).toThrow(message)
})

it('no directory, and the same one twice, are refused', () => {
  expect(() => {
    checkStoreOptions(defaultStoreOptions, [])
  }).toThrow(/at least one/)
  expect(() => {
    checkStoreOptions(defaultStoreOptions, [{ path: '/a' }, { path: '/a' }])
  }).toThrow(/twice/)
})
