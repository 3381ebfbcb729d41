import { beforeEach, describe, expect, it } from 'vitest'
import { makeDurable } from '../../../shuffle-worker/storage/make-durable.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import {
  openStore,
  partitionOf,
  writePartition,
  type StoreFixture,
} from './support/store-fixture.ts'

let virtual: VirtualWorld
let fixture: StoreFixture

beforeEach(async () => {
  virtual = new VirtualWorld()
  fixture = await virtual.drive(openStore(virtual.main, { smallPartitionBytesMax: 1024 }))
  for (const [index, size] of [1000, 40, 1000].entries()) {
    await virtual.drive(writePartition(fixture, partitionOf(index, size)))
  }
})

function make(deadlineMs: number): Promise<boolean> {
  const directory = fixture.store.directories[0]
  if (directory === undefined) throw new Error('no directory')
  return virtual.drive(makeDurable(directory, { clock: virtual.main.clock, deadlineMs }))
}

async function keptAfterPowerLoss(): Promise<number> {
  virtual.main.kill()
  virtual.disk().crash('drop')
  const again = await virtual.drive(openStore(virtual.start('main')))
  return again.store.list().length
}

describe('making what is committed durable', () => {
  it('keeps it through a loss of power', async () => {
    expect(await make(Infinity)).toBe(true)
    expect(await keptAfterPowerLoss()).toBe(3)
  })

  it('says when there was no time, and then the next boot drops it', async () => {
    expect(await make(0)).toBe(false)
    expect(await keptAfterPowerLoss()).toBe(0)
  })

  it('fails when a sync fails, and then the next boot drops it', async () => {
    virtual
      .disk()
      .inject({ operation: 'sync', path: /data$/, fault: { kind: 'error', code: 'EIO' } })
    await expect(make(Infinity)).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(await keptAfterPowerLoss()).toBe(0)
  })
})
