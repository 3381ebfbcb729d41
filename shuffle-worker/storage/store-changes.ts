// Tells one listener what changed in the store: in order, never from within the change itself, and
// releases of one turn as one change. Without a listener changes are dropped: the full list has all.

import type { PartitionKey } from '../../client/common/ids.ts'
import type { StoreChange } from './storage-types.ts'

export class StoreChanges {
  #listener: ((change: StoreChange) => void) | undefined
  #queue: StoreChange[] = []

  listen(listener: (change: StoreChange) => void): void {
    this.#listener = listener
  }

  tell(change: StoreChange): void {
    if (this.#listener === undefined) return
    if (this.#queue.length === 0) {
      queueMicrotask(() => {
        this.#flush()
      })
    }
    this.#queue.push(change)
  }

  #flush(): void {
    const changes = this.#queue
    this.#queue = []
    for (const change of mergeReleases(changes)) this.#listener?.(change)
  }
}

function mergeReleases(changes: readonly StoreChange[]): StoreChange[] {
  const merged: StoreChange[] = []
  let keys: PartitionKey[] | undefined
  for (const change of changes) {
    if (change.kind !== 'released') {
      keys = undefined
      merged.push(change)
    } else if (keys === undefined) {
      keys = [...change.keys]
      merged.push({ kind: 'released', keys })
    } else {
      keys.push(...change.keys)
    }
  }
  return merged
}
