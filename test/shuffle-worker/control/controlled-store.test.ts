import { expect, test } from 'vitest'
import { toldStatus } from '../../../shuffle-worker/control/controlled-store.ts'
import { FakeStore } from '../../support/control-plane.ts'

test('a directory is told with what new partitions may take, never less than nothing', () => {
  const store = new FakeStore('w')
  const [directory] = store.directories
  if (directory === undefined) throw new Error('no directory')
  expect(toldStatus(directory)).toMatchObject({ name: '/data', kind: 'ssd', health: 'healthy' })
  store.changeDirectory({ availableBytes: -5.5, isFull: true, path: 'x'.repeat(2000) })
  const told = toldStatus(directory)
  expect(told).toMatchObject({ freeBytes: 0, isFull: true })
  expect(told.name).toHaveLength(1000)
})
