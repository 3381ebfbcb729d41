// Makes reads cold: the pages of files leave the page cache. GNU dd does it with posix_fadvise
// (POSIX_FADV_DONTNEED on the whole file), which needs no privilege and touches nobody else's pages.

import { execFile } from 'node:child_process'
import { open, readdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const syncsAtATime = 4

export async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
}

/** Part of the time of a write: nothing is left in the page cache that is not on the disk. */
export async function syncFiles(directory: string): Promise<void> {
  const waiting = await filesBelow(directory)
  await Promise.all(
    Array.from({ length: syncsAtATime }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const file = await open(next, 'r')
        await file.sync()
        await file.close()
      }
    }),
  )
}

/** Synced before: a dirty page stays. */
export async function dropFromCache(directory: string): Promise<void> {
  const files = await filesBelow(directory)
  const script = 'for file in "$@"; do dd if="$file" iflag=nocache count=0 status=none; done'
  while (files.length > 0) {
    await run('sh', ['-c', script, 'sh', ...files.splice(0, 500)])
  }
}
