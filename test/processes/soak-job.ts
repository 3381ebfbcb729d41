// What one job of the soak writes, and what its readers must therefore be given.

import type { JobId } from '../../client/index.ts'

export const subpartitions = 4
/** Records of each subpartition, by partition: none, one, a shared log's, a file's. */
export const recordsByPartition = [0, 1, 100, 400, 2_000, 8_000]

export class SoakJob {
  readonly jobId: JobId
  readonly number: number

  constructor(jobId: JobId, number: number) {
    this.jobId = jobId
    this.number = number
  }

  get isBroadcast(): boolean {
    return this.number % 4 === 3
  }

  /** By subpartition; one list for all if it is broadcast. */
  records(index: number): string[][] {
    const count = recordsByPartition[index] ?? 0
    return Array.from({ length: this.isBroadcast ? 1 : subpartitions }, (_, subpartition) =>
      Array.from({ length: count }, (__, at) =>
        `${String(this.number)}/${String(index)}/${String(subpartition)}/${String(at)} `.repeat(
          at === 7 ? 2_000 : 1 + (at % 9),
        ),
      ),
    )
  }

  expected(first: number, last: number): string[] {
    const texts: string[] = []
    for (const index of recordsByPartition.keys()) {
      const records = this.records(index)
      for (let at = first; at <= last; at += 1) {
        texts.push(...(records[this.isBroadcast ? 0 : at] ?? []))
      }
    }
    return texts.sort()
  }
}
