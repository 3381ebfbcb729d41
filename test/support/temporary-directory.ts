// A real directory for a test, removed behind it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export async function withTemporaryDirectory<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  try {
    return await use(path)
  } finally {
    await rm(path, { recursive: true, force: true })
  }
}
