// Names of everything in a data directory. They are numbers of this worker's own; nothing in a path
// ever comes from a peer.
//
//   <directory>/
//     identity            worker, cluster, epoch
//     service             whether people took the worker out of service
//     journal             index of what is committed (journal.new while it is replaced)
//     probe               the health check's file
//     partitions/         <ordinal>.partial while written, <ordinal>.data once committed
//     log/                <ordinal>.segment of the shared log

import { join } from 'node:path'

export interface DirectoryLayout {
  readonly path: string
  readonly identity: string
  readonly identityNew: string
  readonly service: string
  readonly serviceNew: string
  readonly journal: string
  readonly journalNew: string
  readonly probe: string
  readonly partitions: string
  readonly log: string
}

export function layoutOf(path: string): DirectoryLayout {
  return {
    path,
    identity: join(path, 'identity'),
    identityNew: join(path, 'identity.new'),
    service: join(path, 'service'),
    serviceNew: join(path, 'service.new'),
    journal: join(path, 'journal'),
    journalNew: join(path, 'journal.new'),
    probe: join(path, 'probe'),
    partitions: join(path, 'partitions'),
    log: join(path, 'log'),
  }
}

const ordinalDigits = 12

export type StoredFileKind = 'partial' | 'data' | 'segment'

export function fileNameOf(ordinal: number, kind: StoredFileKind): string {
  return `${String(ordinal).padStart(ordinalDigits, '0')}.${kind}`
}

export function partialPath(layout: DirectoryLayout, ordinal: number): string {
  return join(layout.partitions, fileNameOf(ordinal, 'partial'))
}

export function dataPath(layout: DirectoryLayout, ordinal: number): string {
  return join(layout.partitions, fileNameOf(ordinal, 'data'))
}

export function segmentPath(layout: DirectoryLayout, ordinal: number): string {
  return join(layout.log, fileNameOf(ordinal, 'segment'))
}

/** Undefined for a name that this worker never gives. */
export function parseFileName(
  name: string,
): { readonly ordinal: number; readonly kind: StoredFileKind } | undefined {
  const match = /^(\d{12,15})\.(partial|data|segment)$/.exec(name)
  if (match === null) return undefined
  return { ordinal: Number(match[1]), kind: match[2] as StoredFileKind }
}
