// A virtual file opened for direct IO: as strict as a real one about memory, length and position.

import { directBlockBytes, isAligned } from '../../client/common/aligned-memory.ts'
import type { DiskFile } from '../../client/common/disk.ts'
import { systemError } from './virtual-file-tree.ts'

export function virtualDirectFile(file: DiskFile, path: string): DiskFile {
  const fits = (parts: readonly Uint8Array[], position: number) =>
    position % directBlockBytes === 0 && parts.every(isAligned)
  const refused = () => Promise.reject(systemError('EINVAL', path))
  return {
    write: (parts, position) => (fits(parts, position) ? file.write(parts, position) : refused()),
    read: (target, position) =>
      fits([target], position) ? file.read(target, position) : refused(),
    sync: () => file.sync(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    sizeBytes: () => file.sizeBytes(),
    close: () => file.close(),
  }
}
