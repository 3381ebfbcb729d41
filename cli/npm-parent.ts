// npm does not pass its own end on: when it is killed, what it started would live on. So a process
// that npm started looks whether its parent is still the same.

const intervalMs = 500

/** Calls `onGone` once when this process runs under npm and that is gone. */
export function watchNpm(
  environment: Readonly<Record<string, string | undefined>>,
  onGone: () => void,
  parentPid: () => number = () => process.ppid,
): () => void {
  if (environment['npm_lifecycle_event'] === undefined) return () => undefined
  const parent = parentPid()
  const timer = setInterval(() => {
    if (parentPid() === parent) return
    clearInterval(timer)
    onGone()
  }, intervalMs)
  timer.unref()
  return () => {
    clearInterval(timer)
  }
}
