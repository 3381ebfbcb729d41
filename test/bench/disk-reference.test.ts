import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { appendFiles, fileBytesOf, readFiles, type DiskShape } from '../../bench/disk-reference.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

const shape = (directory: string): DiskShape => ({
  directory,
  fileCount: 3,
  requestBytes: 8192,
  depth: 4,
  totalBytes: 100_000,
  isDirect: false,
})

describe('the disk reference', () => {
  it('a file takes whole requests, at least one', () => {
    expect(fileBytesOf(shape(''))).toBe(4 * 8192)
    expect(fileBytesOf({ ...shape(''), totalBytes: 1 })).toBe(8192)
  })

  it('appends all files to their full length and reads every byte of them', async () => {
    await withTemporaryDirectory(async (directory) => {
      const written = await appendFiles(shape(directory))
      expect(written.bytes).toBe(3 * 4 * 8192)
      for (const name of await readdir(directory)) {
        expect((await stat(path.join(directory, name))).size).toBe(4 * 8192)
      }
      expect((await readFiles(shape(directory), 'sequential')).bytes).toBe(written.bytes)
      const small = { ...shape(directory), requestBytes: 4096 }
      expect((await readFiles(small, 'random')).bytes).toBe(written.bytes)
      const part = { ...small, totalBytes: 20_480 }
      expect((await readFiles(part, 'random')).bytes).toBe(20_480)
    })
  })
})
