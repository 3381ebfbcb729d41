// The numbers of the control plane; each an option of the manager.

export interface ClusterOptions {
  readonly heartbeatIntervalMs: number
  /** A worker silent for so long is not chosen. */
  readonly workerSuspectMs: number
  /** A worker not back with its data by then is lost. */
  readonly workerRecoveryMs: number
  /** A lost worker of which nothing is left is forgotten so long after it was last heard. */
  readonly workerForgetMs: number
  /** Silence is not judged for so long after the start. */
  readonly graceMs: number
  readonly settleMs: number
  /** 0: not known. */
  readonly expectedWorkers: number
  readonly jobTimeoutMs: number
  /** Longest time for which a detached job is kept. */
  readonly detachMaxMs: number
  readonly jobPartitionsMax: number
  readonly jobMaxBytes: number
  readonly jobsMax: number
  readonly workersMax: number
  readonly eventsMax: number
  /** A directory with less is not chosen. */
  readonly minFreeBytes: number
}
