import { describe, expect, it } from 'vitest'
import { VirtualWorld } from '../../support/virtual-world.ts'
import {
  entriesOf,
  openStore,
  partitionOf,
  readEntries,
  writePartition,
} from './support/store-fixture.ts'

describe('a data store', () => {
  it.each([
    ['a small partition in the shared log', 100],
    ['a large partition in a file of its own', 4000],
  ])('reads back %s', async (_, payloadBytes) => {
    const virtual = new VirtualWorld()
    const fixture = await virtual.drive(openStore(virtual.main, { smallPartitionBytesMax: 8192 }))
    const partition = partitionOf(1, payloadBytes)
    const totals = await virtual.drive(writePartition(fixture, partition))
    expect(totals).toMatchObject({ regionCount: 2, entryCount: 8, recordCount: 7 })
    const found = fixture.store.lookup(partition.key)
    if (found.state !== 'committed') throw new Error(found.state)
    expect(await virtual.drive(readEntries(found.partition))).toEqual(entriesOf(partition))
    await virtual.drive(fixture.store.close())
  })
})
