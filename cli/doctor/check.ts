// One thing that was looked at, and what to do about it.

export interface Check {
  readonly status: 'ok' | 'warning' | 'failure'
  /** `worker worker-1: disk /data`. */
  readonly what: string
  /** What was seen. */
  readonly seen: string
  /** What to do; of all that is not ok. */
  readonly advice?: string
}

export function ok(what: string, seen: string): Check {
  return { status: 'ok', what, seen }
}

export function warning(what: string, seen: string, advice: string): Check {
  return { status: 'warning', what, seen, advice }
}

export function failure(what: string, seen: string, advice: string): Check {
  return { status: 'failure', what, seen, advice }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const marks = { ok: 'ok  ', warning: 'WARN', failure: 'FAIL' } as const

/** A line each, with what to do below; what is not ok comes last, where the eye is. */
export function describeChecks(checks: readonly Check[]): string {
  const rank = { ok: 0, warning: 1, failure: 2 }
  const sorted = [...checks].sort((one, other) => rank[one.status] - rank[other.status])
  const lines = sorted.map(({ status, what, seen, advice }) => {
    const line = `${marks[status]}  ${what}: ${seen}`
    return advice === undefined ? line : `${line}\n        ${advice}`
  })
  const count = (status: Check['status']) => checks.filter((one) => one.status === status).length
  return `${lines.join('\n')}\n\n${checks.length} things looked at, ${count('warning')} warnings, ${count('failure')} failures\n`
}
