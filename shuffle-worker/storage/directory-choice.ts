// Which data directory a new partition gets: round robin over the healthy ones with room, those of
// the preferred disk kind first.

import { ShuffleError } from '../../client/common/errors.ts'
import type { DiskKind, StorageDirectoryView } from './storage-types.ts'

export class DirectoryChoice<Directory extends StorageDirectoryView> {
  readonly #directories: readonly Directory[]
  readonly #preferredKind: DiskKind
  #next = 0

  constructor(directories: readonly Directory[], preferredKind: DiskKind) {
    this.#directories = directories
    this.#preferredKind = preferredKind
  }

  /**
   * The candidates in the order in which to try them. DISK_FAILED when no disk is healthy, NO_SPACE
   * when those that are have no room for `bytes`.
   */
  candidates(bytes: number): readonly Directory[] {
    const healthy = this.#directories.filter((each) => each.health === 'healthy')
    if (healthy.length === 0) {
      throw new ShuffleError(
        'DISK_FAILED',
        'no data directory of the worker is healthy just now; check its disks',
      )
    }
    const withRoom = healthy.filter((each) => {
      const { isFull, availableBytes } = each.status()
      return !isFull && availableBytes >= bytes
    })
    if (withRoom.length === 0) {
      throw new ShuffleError(
        'NO_SPACE',
        `no data directory of the worker has room for ${String(bytes)} bytes; free space or add a directory`,
        { fields: { neededBytes: bytes } },
      )
    }
    const preferred = withRoom.filter((each) => each.kind === this.#preferredKind)
    const others = withRoom.filter((each) => each.kind !== this.#preferredKind)
    const turn = this.#next
    this.#next += 1
    return [...rotated(preferred, turn), ...rotated(others, turn)]
  }
}

function rotated<T>(items: readonly T[], turn: number): readonly T[] {
  if (items.length === 0) return items
  const start = turn % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}
