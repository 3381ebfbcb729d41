// What one workload was like, round by round: the shape of the bench's results.

export type Party = 'worker' | 'manager' | 'producers' | 'consumers'

/** One measured run of one round. */
export interface Sample {
  /** Payload bytes; 0 where the workload moves none worth counting. */
  readonly bytes: number
  readonly seconds: number
  /** Of all processes of a party. */
  readonly cpuSeconds: Readonly<Partial<Record<Party, number>>>
  /** Largest resident size of the largest process of a party. */
  readonly peakBytes: Readonly<Partial<Record<Party, number>>>
  readonly loopDelayP99Ms: number
  /** Of a process that does nothing, at the same time. */
  readonly idleLoopDelayP99Ms: number
  /** What the worker made the disk do, and what the disk did for the whole machine. */
  readonly worker: { readonly readBytes: number; readonly writtenBytes: number }
  readonly device: { readonly readBytes: number; readonly writtenBytes: number }
  /** File calls of the worker by kind. */
  readonly diskOperations: Readonly<Record<string, number>>
  /** References of the same minute, in MB/s by name. */
  readonly references: Readonly<Record<string, number>>
  /** Figures that only this workload has, by name with unit. */
  readonly figures: Readonly<Record<string, number>>
}

export interface Series {
  /** The workload's letter. */
  readonly workload: string
  readonly name: string
  /** What the references did: files, request size, depth, mode. */
  readonly referenceShape: string
  readonly samples: readonly Sample[]
}

export interface BenchResult {
  readonly startedAt: string
  readonly machine: Readonly<Record<string, string | number>>
  readonly options: Readonly<Record<string, unknown>>
  readonly series: readonly Series[]
}

export const megabyte = 1_000_000
export const gigabyte = 1_000_000_000
export const mebibyte = 1_048_576
