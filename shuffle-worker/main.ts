// The process of one worker.

/** Runs a worker until it is told to stop; resolves to the exit code. */
export function runWorker(_argv: readonly string[]): Promise<number> {
  throw new Error('being written')
}
