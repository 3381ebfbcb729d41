import { beforeEach, describe, expect, it } from 'vitest'
import { parseClusterId, type ClusterId } from '../../../client/common/ids.ts'
import { silentLogger } from '../../../client/common/log.ts'
import {
  openDirectories,
  type OpenedDirectories,
} from '../../../shuffle-worker/storage/directory-opener.ts'
import type { StorageDirectory } from '../../../shuffle-worker/storage/storage-directory.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newDirectory } from './support/directory-bench.ts'
import { clusterId } from './support/store-fixture.ts'

let virtual: VirtualWorld
let directories: StorageDirectory[]

beforeEach(() => {
  virtual = new VirtualWorld()
})

async function open(
  paths: readonly string[],
  cluster: ClusterId = clusterId,
): Promise<OpenedDirectories> {
  const world = virtual.start('main')
  directories = paths.map((path, index) => newDirectory(world, { path, index }).directory)
  return virtual.drive(
    openDirectories({
      world,
      clusterId: cluster,
      directories,
      segmentSizeBytes: 4096,
      sync: false,
      logger: silentLogger,
    }),
  )
}

async function close(): Promise<void> {
  await virtual.drive(Promise.all(directories.map((each) => each.close())))
}

describe('opening data directories', () => {
  it('gives all one worker id, also one that is added later, and raises the epoch each time', async () => {
    const first = await open(['/a'])
    await close()
    const second = await open(['/a', '/b'])
    await close()
    const third = await open(['/b'])
    expect(second.workerId).toBe(first.workerId)
    expect(third.workerId).toBe(first.workerId)
    expect([first, second, third].map((each) => each.workerEpoch)).toEqual([1, 2, 3])
  })

  it('refuses directories of different workers, and gives their locks back', async () => {
    await open(['/a'])
    await close()
    await open(['/b'])
    await close()
    await expect(open(['/a', '/b'])).rejects.toThrow(/\/a and \/b belong to different workers/)
    expect(virtual.disk().heldLocks).toEqual([])
  })

  it('refuses a directory of another cluster', async () => {
    await open(['/a'])
    await close()
    await expect(open(['/a'], parseClusterId('other'))).rejects.toThrow(
      /belongs to cluster test-cluster, this worker to other/,
    )
  })

  it('refuses an identity that is damaged', async () => {
    virtual.disk().put('/a/identity', Buffer.from('sluice-directory 1\nworker'))
    await expect(open(['/a'])).rejects.toMatchObject({ code: 'DATA_CORRUPT' })
  })

  it('gives a disk up that does not answer, and serves the others', async () => {
    await open(['/a', '/b'])
    await close()
    virtual.disk().inject({ path: '/a', fault: { kind: 'hang' } })
    const opened = await open(['/a', '/b'])
    expect([...opened.recovered.keys()].map((each) => each.path)).toEqual(['/b'])
    expect(directories.map((each) => each.health)).toEqual(['failed', 'healthy'])
  })

  it.each([['lock'], [['open', 'unlink', 'write']]] as const)(
    'reads whose a directory is although its disk takes no %s',
    async (operation) => {
      const { workerId } = await open(['/a'])
      await close()
      const refused = virtual.disk().inject({
        path: /^\/a(?!\/identity$)/,
        operation,
        fault: { kind: 'error', code: 'EROFS' },
      })
      const second = await open(['/a', '/b'])
      expect(directories.map((each) => each.health)).toEqual(['failed', 'healthy'])
      expect(second.workerId).toBe(workerId)
      await close()
      refused.remove()
      const third = await open(['/a', '/b'])
      expect(third.workerId).toBe(workerId)
    },
  )

  it('begins as no new worker while a disk that may know its id does not answer', async () => {
    const { workerId } = await open(['/a'])
    await close()
    const hung = virtual.disk().inject({ path: '/a', fault: { kind: 'hang' } })
    await expect(open(['/a', '/b'])).rejects.toThrow(
      /who this worker is can't be read from \/a \(.*\), and its other data directories are new/,
    )
    hung.remove()
    virtual.disk().releaseHung()
    const again = await open(['/a', '/b'])
    expect(again.workerId).toBe(workerId)
  })

  it('reads whose a directory is although its disk closes nothing well', async () => {
    const { workerId } = await open(['/a'])
    await close()
    const refused = virtual.disk().inject({
      path: '/a',
      operation: 'close',
      fault: { kind: 'error', code: 'EIO' },
    })
    const second = await open(['/a', '/b'])
    expect(directories.map((each) => each.health)).toEqual(['failed', 'healthy'])
    expect(second.workerId).toBe(workerId)
    await close()
    refused.remove()
    const third = await open(['/a', '/b'])
    expect(third.workerId).toBe(workerId)
  })

  it('refuses to start when no disk answers, and says of each why', async () => {
    virtual.disk().inject({ fault: { kind: 'error', code: 'EIO' } })
    await expect(open(['/a', '/b'])).rejects.toThrow(
      /none of the data directories.*\/a \([a-z-]+: EIO\), \/b \([a-z-]+: EIO\).*data-directories/,
    )
  })
})
