import { describe, expect, it } from 'vitest'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openStore, partitionOf, writePartition } from './support/store-fixture.ts'

describe('the stop of a store', () => {
  it('ends also when the disk fails under it', async () => {
    const virtual = new VirtualWorld()
    const fixture = await virtual.drive(openStore(virtual.main))
    await virtual.drive(writePartition(fixture, partitionOf(1, 40)))
    virtual.disk().inject({
      operation: ['sync', 'close', 'write'],
      fault: { kind: 'error', code: 'EIO' },
    })
    await virtual.drive(fixture.store.close())
    fixture.ledger.close()
    await virtual.clock.advance(100)
    expect(virtual.clock.timerCount).toBe(0)
    expect(virtual.disk().heldLocks).toEqual([])
  })

  it('is one stop however often it is asked for', async () => {
    const virtual = new VirtualWorld()
    const { store } = await virtual.drive(openStore(virtual.main))
    expect(store.close()).toBe(store.close())
    await virtual.drive(store.close())
  })

  it('keeps what was not synced through the next boot', async () => {
    const virtual = new VirtualWorld()
    const fixture = await virtual.drive(openStore(virtual.main))
    await virtual.drive(writePartition(fixture, partitionOf(1, 40)))
    await virtual.drive(fixture.store.close())
    virtual.disk().crash('drop')
    const again = await virtual.drive(openStore(virtual.start('main')))
    expect(again.store.list()).toHaveLength(1)
  })
})
