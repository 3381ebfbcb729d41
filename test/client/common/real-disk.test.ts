import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { dropBytes, realDisk } from '../../../client/common/real-disk.ts'
import { describeDisk } from '../../support/disk-contract.ts'
import { withTemporaryDirectory } from '../../support/temporary-directory.ts'

describe('the real disk', () => {
  describeDisk((use) =>
    withTemporaryDirectory((directory) =>
      use({ disk: realDisk, directory, drive: (promise) => promise }),
    ),
  )

  test('a system with /proc knows its boot', async () => {
    if (process.platform !== 'linux') expect(await realDisk.bootId()).toBeUndefined()
    else expect(await realDisk.bootId()).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('a directory that can not be made fails, where the one above is there too', async () => {
    if (process.platform !== 'linux') return
    for (const path of ['/proc/sluice', '/proc/sluice/a/b']) {
      await expect(realDisk.makeDirectory(path)).rejects.toMatchObject({ code: 'ENOENT' })
    }
  })

  test('every descriptor is given back, after a failure too', async () => {
    await withTemporaryDirectory(async (directory) => {
      // The calls before the count open whatever Node keeps open.
      await realDisk.syncDirectory(directory)
      const before = await readdir('/proc/self/fd').catch(() => [])
      const file = await realDisk.open(`${directory}/a`, 'create')
      await expect(realDisk.open(`${directory}/a`, 'create')).rejects.toThrow()
      await file.close()
      await realDisk.syncDirectory(directory)
      const lock = await realDisk.lock(directory)
      await lock?.release()
      const after = await readdir('/proc/self/fd').catch(() => [])
      expect(after.length).toBe(before.length)
    })
  })
})

describe('the rest of a gather list after a short write', () => {
  const parts = [Buffer.from('abc'), Buffer.alloc(0), Buffer.from('de'), Buffer.from('f')]

  test.each([
    [0, 'abc|de|f'],
    [1, 'bc|de|f'],
    [3, 'de|f'],
    [4, 'e|f'],
    [5, 'f'],
    [6, ''],
  ])('after %i bytes is %j', (count, rest) => {
    const left = dropBytes(parts, count).filter((part) => part.byteLength > 0)
    expect(left.map((part) => Buffer.from(part).toString()).join('|')).toBe(rest)
  })

  test('leaves the given list as it was', () => {
    dropBytes(parts, 4)
    expect(Buffer.concat(parts).toString()).toBe('abcdef')
  })
})
