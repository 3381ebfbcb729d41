// Reads of a direct file at any position into any memory, through an aligned piece.

import { alignDown, alignUp } from '../../client/common/aligned-memory.ts'
import type { DiskFile } from '../../client/common/disk.ts'
import type { DirectMemory } from './direct-memory.ts'

/** Fills `target` from `position` on; resolves to the bytes read, fewer only at the end of the file. */
export async function readThrough(
  file: DiskFile,
  memory: DirectMemory,
  { target, position }: { readonly target: Uint8Array; readonly position: number },
): Promise<number> {
  const piece = memory.takeForRead()
  try {
    let filled = 0
    while (filled < target.byteLength) {
      const from = position + filled
      const start = alignDown(from)
      const length = Math.min(piece.byteLength, alignUp(from + target.byteLength - filled) - start)
      const count = await file.read(piece.subarray(0, length), start)
      const wanted = target.byteLength - filled
      const got = Math.min(wanted, Math.max(0, count - (from - start)))
      target.set(piece.subarray(from - start, from - start + got), filled)
      filled += got
      if (count < length) break
    }
    return filled
  } finally {
    memory.giveFromRead(piece)
  }
}
