import { beforeEach, describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newDirectory, openDirectory } from './support/directory-bench.ts'

let virtual: VirtualWorld

beforeEach(() => {
  virtual = new VirtualWorld()
})

describe('a storage directory', () => {
  it('is locked for one process', async () => {
    await virtual.drive(openDirectory(virtual.main))
    const { directory } = newDirectory(virtual.start('main'))
    await expect(virtual.drive(directory.lock())).rejects.toThrow(/in use by a running worker/)
  })

  it('samples its space again and again, and tells when it is full and when not', async () => {
    const { directory, events } = await virtual.drive(openDirectory(virtual.main))
    directory.start()
    virtual.disk().setCapacity('/data', 1_000_000)
    await virtual.clock.advance(10_001)
    expect(directory.status().totalBytes).toBe(1_000_000)
    expect(directory.space.tryReserve(800_000)).toBe(true)
    expect(directory.space.tryReserve(300_000)).toBe(false)
    directory.noteSpace()
    virtual.disk().setCapacity('/data', 100_000_000)
    await virtual.clock.advance(10_001)
    expect(events).toEqual(['healthy full', 'healthy open'])
    await virtual.drive(directory.close())
    expect(virtual.clock.timerCount).toBe(0)
  })

  it('gives numbers that ascend and counts its partitions', async () => {
    const { directory } = await virtual.drive(openDirectory(virtual.main))
    expect([directory.nextOrdinal(), directory.nextOrdinal()]).toEqual([1, 2])
    directory.addPartition(100)
    expect(directory.status()).toMatchObject({ partitionCount: 1, partitionBytes: 100 })
    directory.removePartition(100)
    expect(() => {
      directory.removePartition(1)
    }).toThrow(/twice/)
  })

  it('that is given up is lost once and refuses its disk', async () => {
    const { directory, events } = newDirectory(virtual.main)
    directory.giveUp(new ShuffleError('DISK_FAILED', 'gone'))
    expect(events).toEqual(['lost', 'failed open'])
    expect(directory.isOpen).toBe(false)
    await expect(directory.disk.list('/data')).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(directory.figures()).toMatchObject({ inFlight: 0, waiting: 0, openFiles: 0 })
  })
})
