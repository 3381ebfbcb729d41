import { describe, expect, it } from 'vitest'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { openStore, partitionOf, writePartition } from './support/store-fixture.ts'

const options = { smallPartitionBytesMax: 1024 } as const
const other = partitionOf(1, 40)
const small = partitionOf(2, 40)

describe('a small partition that ends while its record is written into the shared log', () => {
  it.each([
    ['released', false],
    ['aborted', true],
  ])('does not come back at the next start when it was %s', async (how, isAborted) => {
    const virtual = new VirtualWorld()
    const fixture = await virtual.drive(openStore(virtual.main, options))
    // So that its segment stays.
    await virtual.drive(writePartition(fixture, other))
    const { store, ledger } = fixture
    let abort: () => Promise<void> = () => Promise.resolve()
    const openWrite: typeof store.openWrite = async (request) => {
      const writer = await store.openWrite(request)
      abort = () => writer.abort()
      return writer
    }
    const fault = { kind: 'slow', delayMs: 50 } as const
    const slow = virtual.disk().inject({ operation: 'write', path: /segment/, fault })
    const writing = writePartition({ store: { openWrite }, ledger }, small)
    const outcome = writing.catch((error: unknown) => String(error))
    await virtual.clock.advance(5)
    if (isAborted) void abort()
    else store.release([small.key])
    expect(await virtual.drive(outcome)).toContain(how)
    slow.remove()
    await virtual.clock.advance(1000)
    virtual.main.kill()
    const next = await virtual.drive(openStore(virtual.start('main'), options))
    expect(next.store.lookup(small.key).state).not.toBe('committed')
    expect(next.store.lookup(other.key).state).toBe('committed')
  })
})
