// Deletes partitions that are told to release: the journal first, so that none comes back after a
// restart, then a wait for the readers that had begun, then the bytes. A few at a time per
// directory, so that the release of a whole job leaves the disk to others. Owned by the data store.

import type { Clock } from '../../client/common/clock.ts'
import type { Logger } from '../../client/common/log.ts'
import { dataPath } from './directory-layout.ts'
import { ignoreMissing } from './journal.ts'
import type { StorageDirectory } from './storage-directory.ts'
import type { StoredPartition } from './stored-partition.ts'

export interface PartitionReleaserSettings {
  readonly clock: Clock
  readonly logger: Logger
  readonly readersTimeoutMs: number
  /** Its bytes are gone, or can't be reached and go with the next start. */
  readonly onGone: (partition: StoredPartition) => void
}

/** Deletions under way in one directory; the disk's queue has more lanes to serve. */
const deletionsMax = 2

interface Lane {
  readonly ready: StoredPartition[]
  active: number
}

export class PartitionReleaser {
  readonly #settings: PartitionReleaserSettings
  readonly #lanes = new Map<StorageDirectory, Lane>()
  readonly #underWay = new Set<Promise<void>>()

  constructor(settings: PartitionReleaserSettings) {
    this.#settings = settings
  }

  release(partition: StoredPartition): void {
    const work = this.#release(partition).finally(() => this.#underWay.delete(work))
    this.#underWay.add(work)
  }

  /** When all that was given to release is gone, or has failed. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  async #release(partition: StoredPartition): Promise<void> {
    const { clock, logger, readersTimeoutMs } = this.#settings
    const { directory, place, key } = partition
    const journalled = directory.journal.release(place, key).catch((error: unknown) => {
      logger.warn({ ...key, error }, 'a release could not be noted in the journal')
    })
    await partition.release({ clock, timeoutMs: readersTimeoutMs })
    await journalled
    await this.#inTurn(partition)
  }

  #inTurn(partition: StoredPartition): Promise<void> {
    const lane = this.#laneOf(partition.directory)
    if (lane.active >= deletionsMax) {
      lane.ready.push(partition)
      return Promise.resolve()
    }
    return this.#work(lane, partition)
  }

  async #work(lane: Lane, first: StoredPartition): Promise<void> {
    lane.active += 1
    for (let next: StoredPartition | undefined = first; next !== undefined;) {
      await this.#delete(next)
      this.#settings.onGone(next)
      next = lane.ready.shift()
    }
    lane.active -= 1
  }

  async #delete({ directory, place, key }: StoredPartition): Promise<void> {
    try {
      if (place.kind === 'segment') {
        // The directory counts its bytes as free when the whole segment goes.
        await directory.log.released(place.ordinal)
        return
      }
      await directory.disk.unlink(dataPath(directory.layout, place.ordinal)).catch(ignoreMissing)
      directory.journal.state.forgetFile(place.ordinal)
      directory.space.freed(place.byteLength)
      directory.noteSpace()
    } catch (error) {
      this.#settings.logger.warn(
        { ...key, error },
        'a released partition could not be deleted; the next start does it',
      )
    }
  }

  #laneOf(directory: StorageDirectory): Lane {
    let lane = this.#lanes.get(directory)
    if (lane === undefined) {
      lane = { ready: [], active: 0 }
      this.#lanes.set(directory, lane)
    }
    return lane
  }
}
