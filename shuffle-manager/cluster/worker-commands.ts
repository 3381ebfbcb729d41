// What one worker is to do: release partitions, forget confirmed ones, leave or enter service. Commands go out in numbered
// batches; a batch is repeated until the worker says that it has seen its number. Owned by the worker's
// record.

import type { PartitionKey } from '../../client/common/ids.ts'
import type { WorkerCommand } from '../../client/manager/api-workers.ts'
import { encodeKeys, groupBy } from '../../client/manager/key-columns.ts'
import type { JobKeyGroups, ServiceRecord } from '../../client/manager/schemas.ts'
import type { RowRef } from './partition-table.ts'

export interface CommandBatch {
  readonly number: number
  readonly commands: WorkerCommand[]
}

/** Keys in one batch: a fraction of a megabyte. */
const batchKeysMax = 5_000

export class WorkerCommands {
  /** Rows whose release the worker is still to be told. */
  readonly releases = new Set<RowRef>()
  /** Copies that no row stands for: superseded ones. */
  readonly #strays: PartitionKey[] = []
  readonly #confirmed: PartitionKey[] = []
  /** In or out of service, as people want it; goes out with the next batch. */
  service: ServiceRecord | undefined
  #outstanding: CommandBatch | undefined
  #lastNumber = 0

  get isEmpty(): boolean {
    return (
      this.#outstanding === undefined &&
      this.service === undefined &&
      this.releases.size === 0 &&
      this.#strays.length === 0 &&
      this.#confirmed.length === 0
    )
  }

  releaseStray(key: PartitionKey): void {
    this.#strays.push(key)
  }

  confirm(key: PartitionKey): void {
    this.#confirmed.push(key)
  }

  /** The worker has taken in the commands up to this number. */
  seen(number: number): void {
    if (this.#outstanding !== undefined && this.#outstanding.number <= number) {
      this.#outstanding = undefined
    }
  }

  /** The batch under way, or the next one; `keyOf` is undefined for rows that are gone. */
  next(keyOf: (ref: RowRef) => PartitionKey | undefined): CommandBatch {
    if (this.#outstanding !== undefined) return this.#outstanding
    const release = this.#strays.splice(0, batchKeysMax)
    for (const ref of this.releases) {
      if (release.length >= batchKeysMax) break
      this.releases.delete(ref)
      const key = keyOf(ref)
      if (key !== undefined) release.push(key)
    }
    const confirmed = this.#confirmed.splice(0, batchKeysMax)
    const commands: WorkerCommand[] = []
    if (this.service !== undefined) commands.push({ type: 'service', service: this.service })
    this.service = undefined
    if (release.length > 0) commands.push({ type: 'release', jobs: groupKeys(release) })
    if (confirmed.length > 0) {
      commands.push({ type: 'confirm-released', jobs: groupKeys(confirmed) })
    }
    if (commands.length === 0) return { number: this.#lastNumber, commands }
    this.#outstanding = { number: ++this.#lastNumber, commands }
    return this.#outstanding
  }

  /** The worker registers anew: its list says again what there is to do. */
  reset(): void {
    this.releases.clear()
    this.#strays.length = 0
    this.#confirmed.length = 0
    this.#outstanding = undefined
  }
}

/** Keys by job and data set. */
export function groupKeys(keys: readonly PartitionKey[]): JobKeyGroups[] {
  return groupBy(keys, (key) => key.jobId).map((group) => ({
    jobId: group.name,
    dataSets: encodeKeys(group.items),
  }))
}
