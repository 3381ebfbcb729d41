import { describe, expect, it } from 'vitest'
import type { StoreChange } from '../../../shuffle-worker/storage/storage-types.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openStore, partitionOf, writePartition } from './support/store-fixture.ts'

async function releaseAll(payloadBytes: number, prepare: (virtual: VirtualWorld) => void) {
  const virtual = new VirtualWorld()
  const fixture = await virtual.drive(openStore(virtual.main, { smallPartitionBytesMax: 1024 }))
  const partitions = Array.from({ length: 20 }, (_, index) => partitionOf(index, payloadBytes))
  for (const each of partitions) await virtual.drive(writePartition(fixture, each))
  const gone: StoreChange[] = []
  fixture.store.onChange((change) => gone.push(change))
  prepare(virtual)
  fixture.store.release(partitions.map((each) => each.key))
  const count = () =>
    gone.reduce((sum, each) => sum + (each.kind === 'released' ? each.keys.length : 0), 0)
  await virtual.clock.runUntil(() => count() === partitions.length)
  return { virtual, fixture }
}

describe('the release of many partitions', () => {
  it('deletes every file and counts its space as free', async () => {
    const { virtual, fixture } = await releaseAll(1000, () => undefined)
    expect(virtual.disk().filesBelow('/data/partitions')).toEqual([])
    const status = fixture.store.directories[0]?.status()
    expect(status).toMatchObject({ partitionCount: 0, partitionBytes: 0 })
    expect(fixture.store.directories[0]?.journal.state.committed.size).toBe(0)
    expect(fixture.store.directories[0]?.journal.state.released.size).toBe(0)
  })

  it('goes on when a file cannot be deleted, and the next start deletes it', async () => {
    const { virtual, fixture } = await releaseAll(1000, (world) => {
      world.disk().inject({
        operation: 'unlink',
        path: /data$/,
        times: 1,
        fault: { kind: 'error', code: 'EACCES' },
      })
    })
    expect(virtual.disk().filesBelow('/data/partitions')).toHaveLength(1)
    await virtual.drive(fixture.store.close())
    const again = await virtual.drive(openStore(virtual.start('main')))
    expect(virtual.disk().filesBelow('/data/partitions')).toEqual([])
    expect(again.store.list()).toEqual([])
  })

  it.each([
    ['files', 1000],
    ['records of a segment', 40],
  ])('holds when the journal of a full disk could not take it: %s', async (_, payloadBytes) => {
    const { virtual, fixture } = await releaseAll(payloadBytes, (world) => {
      world.disk().inject({
        operation: 'write',
        path: /journal/,
        times: 1,
        fault: { kind: 'error', code: 'ENOSPC' },
      })
    })
    const { journal } = fixture.store.directories[0] ?? expect.unreachable()
    expect(journal.state.committed.size).toBe(0)
    await virtual.clock.runUntil(() => fixture.store.directories[0]?.isFull === false)
    const kept = partitionOf(90, payloadBytes)
    await virtual.drive(writePartition(fixture, kept))
    virtual.main.kill()
    const again = await virtual.drive(openStore(virtual.start('main')))
    expect(again.store.list().map((each) => each.key)).toEqual([kept.key])
    expect(again.store.lookup(partitionOf(0, payloadBytes).key)).toEqual({ state: 'unknown' })
  })

  it('lets small ones go with their segment, at the latest with the next start', async () => {
    const { virtual, fixture } = await releaseAll(40, () => undefined)
    await virtual.drive(fixture.store.close())
    const again = await virtual.drive(openStore(virtual.start('main')))
    expect(virtual.disk().filesBelow('/data/log')).toEqual([])
    expect(again.store.list()).toEqual([])
  })
})
