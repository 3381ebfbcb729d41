import { beforeEach, describe, expect, it } from 'vitest'
import { parseClusterId, parseWorkerId } from '../../../client/common/ids.ts'
import {
  decodeIdentity,
  encodeIdentity,
  readIdentity,
  writeIdentity,
} from '../../../shuffle-worker/storage/directory-identity.ts'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const identity = {
  workerId: parseWorkerId('worker-1'),
  clusterId: parseClusterId('cluster-1'),
  workerEpoch: 41,
}
const layout = layoutOf('/data')

let virtual: VirtualWorld

beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory('/data'))
})

describe('the identity of a data directory', () => {
  it('is unknown in a new one, and durable once written', async () => {
    const disk = newQueuedDisk(virtual.main)
    expect(await virtual.drive(readIdentity(disk, layout))).toBeUndefined()
    await virtual.drive(writeIdentity(disk, layout, identity))
    await virtual.drive(writeIdentity(disk, layout, { ...identity, workerEpoch: 42 }))
    virtual.disk().crash('drop')
    const again = newQueuedDisk(virtual.start('main'))
    expect(await virtual.drive(readIdentity(again, layout))).toEqual({
      ...identity,
      workerEpoch: 42,
    })
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/identity'])
  })

  it('is written over where there is no room for a second; a new one is refused there', async () => {
    const disk = newQueuedDisk(virtual.main)
    await virtual.drive(writeIdentity(disk, layout, identity))
    const length = encodeIdentity(identity).byteLength
    virtual.disk().setCapacity('/data', length + 10)
    await virtual.drive(writeIdentity(disk, layout, { ...identity, workerEpoch: 42 }))
    virtual.disk().crash('drop')
    const again = newQueuedDisk(virtual.start('main'))
    expect(await virtual.drive(readIdentity(again, layout))).toMatchObject({ workerEpoch: 42 })
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/identity'])
    await virtual.drive(again.unlink(layout.identity))
    virtual.disk().setCapacity('/data', 10)
    await expect(virtual.drive(writeIdentity(again, layout, identity))).rejects.toMatchObject({
      code: 'NO_SPACE',
    })
    expect(virtual.disk().filesBelow('/data')).toEqual([])
  })

  it('is refused when any byte of it is damaged or missing', () => {
    const bytes = Buffer.from(encodeIdentity(identity))
    for (let at = 0; at < bytes.byteLength; at += 1) {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      expect(() => decodeIdentity(damaged, '/data/identity')).toThrow()
      expect(() => decodeIdentity(bytes.subarray(0, at), '/data/identity')).toThrow()
    }
    expect(decodeIdentity(bytes, '/data/identity')).toEqual(identity)
  })

  it('of another version is refused by name', () => {
    const text = Buffer.from(encodeIdentity(identity))
      .toString()
      .replace('directory 1', 'directory 2')
    expect(() => decodeIdentity(Buffer.from(text), '/data/identity')).toThrow(/version 2/)
  })
})
