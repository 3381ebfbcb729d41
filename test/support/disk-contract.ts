// What every Disk promises, as tests: run over the real one and over the virtual one.

import { expect, test } from 'vitest'
import { alignedMemory, directBlockBytes } from '../../client/common/aligned-memory.ts'
import type { Disk } from '../../client/common/disk.ts'
import { patternBytes } from './connection-probe.ts'

export interface DiskUnderTest {
  readonly disk: Disk
  /** An empty directory of this disk. */
  readonly directory: string
  /** Waits for a promise in whatever time this disk has. */
  drive<T>(promise: Promise<T>): Promise<T>
}

/** `underTest` runs `use` on a fresh directory and clears up behind it. */
export function describeDisk(
  underTest: (use: (under: DiskUnderTest) => Promise<void>) => Promise<void>,
): void {
  const run = (name: string, use: (under: DiskUnderTest) => Promise<void>) => {
    test(name, () => underTest(use))
  }

  run('what is written in parts at any position is read back', async (under) => {
    const { disk, directory, drive } = under
    const file = await drive(disk.open(`${directory}/a`, 'create'))
    const whole = patternBytes(100_000, 1)
    await drive(file.write([whole.subarray(50_000)], 50_000))
    await drive(file.write([whole.subarray(0, 1), whole.subarray(1, 50_000)], 0))
    expect(await drive(file.sizeBytes())).toBe(100_000)
    const target = Buffer.alloc(60_000)
    expect(await drive(file.read(target, 10_000))).toBe(60_000)
    expect(target.equals(whole.subarray(10_000, 70_000))).toBe(true)
    await drive(file.sync())
    await drive(file.close())
  })

  run('more parts than the system takes in one call are all written', async (under) => {
    const { disk, directory, drive } = under
    const whole = patternBytes(3000 * 3, 2)
    const parts = Array.from({ length: 3000 }, (_, index) =>
      whole.subarray(index * 3, index * 3 + 3),
    )
    const file = await drive(disk.open(`${directory}/many`, 'create'))
    await drive(file.write([new Uint8Array(0), ...parts], 5))
    const target = Buffer.alloc(whole.byteLength)
    expect(await drive(file.read(target, 5))).toBe(whole.byteLength)
    expect(target.equals(whole)).toBe(true)
    await drive(file.close())
  })

  run('a write of nothing makes no file longer', async ({ disk, directory, drive }) => {
    const file = await drive(disk.open(`${directory}/empty`, 'create'))
    await drive(file.write([], 100))
    await drive(file.write([new Uint8Array(0)], 100))
    expect(await drive(file.sizeBytes())).toBe(0)
    await drive(file.close())
  })

  run('a read past the end says how many bytes there were', async (under) => {
    const { disk, directory, drive } = under
    const file = await drive(disk.open(`${directory}/short`, 'create'))
    await drive(file.write([Buffer.from('12345')], 0))
    const target = Buffer.alloc(10, 'x')
    expect(await drive(file.read(target, 2))).toBe(3)
    expect(target.toString()).toBe('345xxxxxxx')
    expect(await drive(file.read(target, 5))).toBe(0)
    expect(await drive(file.read(target, 5000))).toBe(0)
    await drive(file.close())
  })

  run('truncate cuts, and fills with zeros', async ({ disk, directory, drive }) => {
    const file = await drive(disk.open(`${directory}/cut`, 'create'))
    await drive(file.write([Buffer.from('12345')], 0))
    await drive(file.truncate(3))
    await drive(file.truncate(5))
    const target = Buffer.alloc(5)
    expect(await drive(file.read(target, 0))).toBe(5)
    expect([...target]).toEqual([0x31, 0x32, 0x33, 0, 0])
    await drive(file.close())
  })

  run('a direct file takes aligned memory in blocks, and ends where it was cut', async (under) => {
    const { disk, directory, drive } = under
    const path = `${directory}/direct`
    const opened = await drive(disk.open(path, 'create', { isDirect: true })).catch(
      (error: unknown) => error as { readonly code?: string },
    )
    if (!('write' in opened)) {
      expect(opened.code).toBe('EINVAL')
      process.stdout.write('no direct IO here: only its refusal was tested\n')
      return
    }
    const memory = alignedMemory(4 * directBlockBytes)
    memory.set(patternBytes(memory.byteLength, 3))
    const [two, rest] = [memory.subarray(0, 2 * 4096), memory.subarray(2 * 4096)]
    await drive(opened.write([two], 0))
    await drive(opened.write([rest], 2 * directBlockBytes))
    await drive(opened.truncate(3 * directBlockBytes + 100))
    await drive(opened.close())
    const reading = await drive(disk.open(path, 'read', { isDirect: true }))
    const target = alignedMemory(4 * directBlockBytes)
    expect(await drive(reading.read(target, 0))).toBe(3 * directBlockBytes + 100)
    const length = 3 * directBlockBytes + 100
    expect(Buffer.from(target.subarray(0, length)).equals(memory.subarray(0, length))).toBe(true)
    const block = target.subarray(0, directBlockBytes)
    expect(await drive(reading.read(block, 3 * directBlockBytes))).toBe(100)
    expect(await drive(reading.read(block, 4 * directBlockBytes))).toBe(0)
    await drive(reading.close())
  })

  run('a direct file refuses what is not aligned', async ({ disk, directory, drive }) => {
    const file = await drive(disk.open(`${directory}/strict`, 'create', { isDirect: true })).catch(
      () => undefined,
    )
    if (file === undefined) {
      process.stdout.write('no direct IO here: its strictness was not tested\n')
      return
    }
    const memory = alignedMemory(2 * directBlockBytes)
    const odd = memory.subarray(0, 1000)
    const shifted = memory.subarray(8, 8 + directBlockBytes)
    await expect(drive(file.write([odd], 0))).rejects.toMatchObject({ code: 'EINVAL' })
    await expect(drive(file.write([shifted], 0))).rejects.toMatchObject({ code: 'EINVAL' })
    const block = memory.subarray(0, directBlockBytes)
    await expect(drive(file.write([block], 100))).rejects.toMatchObject({ code: 'EINVAL' })
    await drive(file.close())
  })

  run('create refuses an existing file; read and update want one', async (under) => {
    const { disk, directory, drive } = under
    const path = `${directory}/once`
    for (const mode of ['read', 'update'] as const) {
      await expect(drive(disk.open(path, mode))).rejects.toMatchObject({ code: 'ENOENT' })
    }
    const file = await drive(disk.open(path, 'create'))
    await drive(file.write([Buffer.from('kept')], 0))
    await drive(file.close())
    await expect(drive(disk.open(path, 'create'))).rejects.toMatchObject({ code: 'EEXIST' })
    const again = await drive(disk.open(path, 'update'))
    await drive(again.write([Buffer.from('K')], 0))
    await drive(again.close())
    const reading = await drive(disk.open(path, 'read'))
    const target = Buffer.alloc(4)
    await drive(reading.read(target, 0))
    expect(target.toString()).toBe('Kept')
    await expect(drive(reading.write([target], 0))).rejects.toMatchObject({ code: 'EBADF' })
    await drive(reading.close())
  })

  run('a closed file refuses everything', async ({ disk, directory, drive }) => {
    const file = await drive(disk.open(`${directory}/closed`, 'create'))
    await drive(file.close())
    const target = Buffer.alloc(1)
    await expect(drive(file.read(target, 0))).rejects.toMatchObject({ code: 'EBADF' })
    await expect(drive(file.write([target], 0))).rejects.toMatchObject({ code: 'EBADF' })
    await expect(drive(file.sync())).rejects.toMatchObject({ code: 'EBADF' })
    await expect(drive(file.close())).rejects.toMatchObject({ code: 'EBADF' })
  })

  run('rename replaces, and an open file stays what it was', async (under) => {
    const { disk, directory, drive } = under
    const made = await drive(disk.open(`${directory}/new.partial`, 'create'))
    await drive(made.write([Buffer.from('new')], 0))
    const old = await drive(disk.open(`${directory}/old`, 'create'))
    await drive(old.write([Buffer.from('old')], 0))
    await drive(disk.rename(`${directory}/new.partial`, `${directory}/old`))
    expect(await drive(disk.list(directory))).toEqual(['old'])
    const target = Buffer.alloc(3)
    await drive(old.read(target, 0))
    expect(target.toString()).toBe('old')
    await drive(made.read(target, 0))
    expect(target.toString()).toBe('new')
    await drive(old.close())
    await drive(made.close())
    const missing = disk.rename(`${directory}/none`, `${directory}/old`)
    await expect(drive(missing)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  run('an unlinked file is gone by name and readable while open', async (under) => {
    const { disk, directory, drive } = under
    const path = `${directory}/gone`
    const file = await drive(disk.open(path, 'create'))
    await drive(file.write([Buffer.from('still')], 0))
    await drive(disk.unlink(path))
    expect(await drive(disk.status(path))).toBeUndefined()
    const target = Buffer.alloc(5)
    expect(await drive(file.read(target, 0))).toBe(5)
    await drive(file.close())
    await expect(drive(disk.unlink(path))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  run('directories are made with their parents, listed and told from files', async (under) => {
    const { disk, directory, drive } = under
    await drive(disk.makeDirectory(`${directory}/a/b`))
    await drive(disk.makeDirectory(`${directory}/a/b`))
    const file = await drive(disk.open(`${directory}/a/file`, 'create'))
    await drive(file.write([Buffer.alloc(7)], 0))
    await drive(file.close())
    await drive(disk.syncDirectory(`${directory}/a`))
    expect((await drive(disk.list(`${directory}/a`))).sort()).toEqual(['b', 'file'])
    expect(await drive(disk.status(`${directory}/a/b`))).toMatchObject({ isDirectory: true })
    const status = { sizeBytes: 7, isDirectory: false }
    expect(await drive(disk.status(`${directory}/a/file`))).toEqual(status)
    expect(await drive(disk.status(`${directory}/a/file/below`))).toBeUndefined()
    for (const path of [`${directory}/a/file`, `${directory}/a/file/b/c`]) {
      await expect(drive(disk.makeDirectory(path))).rejects.toMatchObject({ code: 'EEXIST' })
    }
    const missing = disk.list(`${directory}/none`)
    await expect(drive(missing)).rejects.toMatchObject({ code: 'ENOENT' })
    const orphan = disk.open(`${directory}/none/file`, 'create')
    await expect(drive(orphan)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  run('space says what is free of what there is', async ({ disk, directory, drive }) => {
    const space = await drive(disk.space(directory))
    expect(space.totalBytes).toBeGreaterThan(0)
    expect(space.freeBytes).toBeLessThanOrEqual(space.totalBytes)
  })

  run('a directory is locked once, and again after its release', async (under) => {
    const { disk, directory, drive } = under
    const lock = await drive(disk.lock(directory))
    expect(await drive(disk.lock(directory))).toBeUndefined()
    expect(await drive(disk.lock(directory))).toBeUndefined()
    await drive(lock?.release() ?? Promise.reject(new Error('not locked')))
    const again = await drive(disk.lock(directory))
    expect(again).toBeDefined()
    await drive(again?.release() ?? Promise.reject(new Error('not locked')))
    await expect(drive(disk.lock(`${directory}/none`))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  run('the boot id stays the same while the system runs', async ({ disk, drive }) => {
    expect(await drive(disk.bootId())).toBe(await drive(disk.bootId()))
  })
}
