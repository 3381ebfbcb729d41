// Whether a data directory takes direct IO: tried once, with the file that probes use. File systems in
// memory and some networked ones don't, and say so only when asked.

import { alignedMemory, directBlockBytes } from '../../client/common/aligned-memory.ts'
import { ignoreMissing } from './journal.ts'
import { systemCodeOf } from './disk-operation.ts'
import type { QueuedDisk } from './queued-disk.ts'

const refusals: ReadonlySet<string> = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

/** Errors of the disk itself are the caller's. */
export async function takesDirect(disk: QueuedDisk, probePath: string): Promise<boolean> {
  await disk.unlink(probePath).catch(ignoreMissing)
  try {
    const file = await disk.open(probePath, 'create', { isDirect: true })
    try {
      // As the pool's own memory is: where that can't be aligned nothing is won by direct IO.
      const memory = alignedMemory(directBlockBytes)
      await file.writeLater(() => ({ parts: [memory], position: 0, onEnded: () => undefined }))
        .result
    } finally {
      await file.close()
    }
    return true
  } catch (error) {
    // No room is no answer; the writes to come will meet it.
    const code = systemCodeOf(error) ?? ''
    if (refusals.has(code)) return false
    if (code === 'ENOSPC' || code === 'EDQUOT') return true
    throw error
  } finally {
    await disk.unlink(probePath).catch(ignoreMissing)
  }
}
