import { beforeEach, describe, expect, it } from 'vitest'
import { takesDirect } from '../../../shuffle-worker/storage/direct-check.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk, openDirectory } from './support/directory-bench.ts'

const probe = '/data/probe'
let virtual: VirtualWorld
beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory('/data'))
})

const check = () => virtual.drive(takesDirect(newQueuedDisk(virtual.main), probe))

describe('whether a directory takes direct IO', () => {
  it('is tried, and nothing is left of it', async () => {
    virtual.disk().put(probe, Buffer.from('of an earlier life'))
    expect(await check()).toBe(true)
    expect(virtual.disk().filesBelow('/data')).toEqual([])
  })

  it('no, where opening is refused', async () => {
    virtual.disk().refuseDirect()
    expect(await check()).toBe(false)
  })

  it('no, where the first write is refused', async () => {
    const fault = { kind: 'error', code: 'EINVAL' } as const
    virtual.disk().inject({ operation: 'write', fault })
    expect(await check()).toBe(false)
    expect(virtual.disk().filesBelow('/data')).toEqual([])
  })

  it('a full disk says nothing against it, a broken one is an error', async () => {
    const full = virtual.disk().inject({
      operation: 'write',
      fault: { kind: 'error', code: 'ENOSPC' },
    })
    expect(await check()).toBe(true)
    full.remove()
    virtual.disk().inject({ operation: 'write', fault: { kind: 'error', code: 'EIO' } })
    await expect(check()).rejects.toMatchObject({ code: 'DISK_FAILED' })
  })

  it('a directory that takes none is buffered, and works', async () => {
    virtual.disk().refuseDirect()
    const { directory } = await virtual.drive(openDirectory(virtual.main))
    expect(directory.isDirect).toBe(false)
    expect(directory.directMemory).toBeUndefined()
    expect(directory.health).toBe('healthy')
  })

  it('a directory that takes it is direct', async () => {
    const { directory } = await virtual.drive(openDirectory(virtual.main))
    expect(directory.isDirect).toBe(true)
  })
})
