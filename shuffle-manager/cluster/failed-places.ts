// Where attempts of one job's partitions came to nothing: given up before they were committed. The
// next attempt of such a partition goes elsewhere if there is an elsewhere. Without it a worker that
// fails every write (its disk is nearly full, say) has the fewest partitions of all, and so gets each
// retry. Owned by its job.

import type { DataSetId } from '../../client/common/ids.ts'

/** Partitions remembered; the oldest go first. */
const partitionsMax = 10_000
/** Workers remembered for one partition: the last ones. */
const workersMax = 16

export class FailedPlaces {
  readonly #workers = new Map<string, number[]>()

  add(dataSetId: DataSetId, partitionIndex: number, worker: number): void {
    const name = nameOf(dataSetId, partitionIndex)
    const workers = (this.#workers.get(name) ?? []).filter((other) => other !== worker)
    workers.push(worker)
    this.#workers.delete(name)
    this.#workers.set(name, workers.slice(-workersMax))
    if (this.#workers.size <= partitionsMax) return
    const [oldest] = this.#workers.keys()
    if (oldest !== undefined) this.#workers.delete(oldest)
  }

  /** Numbers of workers, the last to fail last. */
  of(dataSetId: DataSetId, partitionIndex: number): readonly number[] {
    if (this.#workers.size === 0) return []
    return this.#workers.get(nameOf(dataSetId, partitionIndex)) ?? []
  }

  /** An attempt was committed. */
  forget(dataSetId: DataSetId, partitionIndex: number): void {
    if (this.#workers.size > 0) this.#workers.delete(nameOf(dataSetId, partitionIndex))
  }
}

function nameOf(dataSetId: DataSetId, partitionIndex: number): string {
  return `${String(partitionIndex)} ${dataSetId}`
}
