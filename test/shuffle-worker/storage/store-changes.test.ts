import { expect, it } from 'vitest'
import type { StoreChange } from '../../../shuffle-worker/storage/storage-types.ts'
import { StoreChanges } from '../../../shuffle-worker/storage/store-changes.ts'
import { keyOf } from './support/store-fixture.ts'

it('changes are told after the turn, in order, neighbouring releases as one', async () => {
  const changes = new StoreChanges()
  changes.tell({ kind: 'aborted', key: keyOf(0) })
  const heard: StoreChange[] = []
  changes.listen((change) => heard.push(change))
  for (const index of [1, 2]) changes.tell({ kind: 'released', keys: [keyOf(index)] })
  changes.tell({ kind: 'aborted', key: keyOf(3) })
  changes.tell({ kind: 'released', keys: [keyOf(4)] })
  expect(heard).toEqual([])
  await Promise.resolve()
  expect(heard).toEqual([
    { kind: 'released', keys: [keyOf(1), keyOf(2)] },
    { kind: 'aborted', key: keyOf(3) },
    { kind: 'released', keys: [keyOf(4)] },
  ])
})
