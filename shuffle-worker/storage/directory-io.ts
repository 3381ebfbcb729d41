// How the files of a data directory are written and read: past the page cache or through it.

import type { MemoryLedger } from '../memory/memory-ledger.ts'
import type { DiskKind } from './storage-types.ts'

export interface DirectorySettings {
  readonly path: string
  readonly kind: DiskKind
  /** Past the page cache, where the file system can; what {@link isDirectDefault} says unless given. */
  readonly isDirect?: boolean
}

const gatheredBytes = 1024 * 1024

/** A disk without heads; the writes of one with heads are better gathered by the system. */
export function isDirectDefault(kind: DiskKind): boolean {
  return kind === 'ssd'
}

/** What a write gathers, the next buffer too; of a small pool an eighth of the write part for all. */
export function gatheredWriteBytes(ledger: MemoryLedger): number {
  const least = 4 * ledger.bufferSizeBytes
  const share = Math.floor(ledger.partBytes('write') / 8 / 4)
  return Math.max(least, Math.min(gatheredBytes + 2 * ledger.bufferSizeBytes, share))
}
