// A clean stop: what was committed without sync is synced now, within a time, and the journal says
// so, so that a reboot after it loses nothing. Without the journal's word the next boot drops it.

import type { Clock } from '../../client/common/clock.ts'
import { dataPath, segmentPath } from './directory-layout.ts'
import type { CommittedRecord } from './journal-records.ts'
import { systemCodeOf } from './disk-operation.ts'
import type { StorageDirectory } from './storage-directory.ts'

/** Syncs of one directory under way at once. */
const syncsMax = 4

/** True when everything committed in the directory is durable, and the journal says so. */
export async function makeDurable(
  directory: StorageDirectory,
  budget: { readonly clock: Clock; readonly deadlineMs: number },
): Promise<boolean> {
  const { disk, journal, layout } = directory
  const records = [...journal.state.committed.values()].filter((each) => !each.isDurable)
  const paths = [...new Set(records.map((each) => pathOf(directory, each)))]
  let next = 0
  const isLate = () => budget.clock.nowMs() >= budget.deadlineMs
  const work = async () => {
    for (let path = paths[next++]; path !== undefined && !isLate(); path = paths[next++]) {
      await syncFile(directory, path)
    }
  }
  await Promise.all(Array.from({ length: syncsMax }, work))
  if (next < paths.length || isLate()) return false
  if (paths.length > 0) {
    await disk.syncDirectory(layout.partitions)
    await disk.syncDirectory(layout.log)
  }
  await journal.append({ type: 'durable' }, { sync: true })
  return true
}

async function syncFile(directory: StorageDirectory, path: string): Promise<void> {
  const file = await directory.disk.open(path, 'update').catch((error: unknown) => {
    // Released meanwhile.
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

function pathOf({ layout }: StorageDirectory, { place }: CommittedRecord): string {
  return place.kind === 'file'
    ? dataPath(layout, place.ordinal)
    : segmentPath(layout, place.ordinal)
}
