// Errors on their way between processes: code and fields survive, and a stack for people.

import { errorTable, ShuffleError, type ErrorCode, type ErrorFields } from '../client/index.ts'

export interface TaskError {
  /** Undefined for an error that is none of the shuffle's: the task's own. */
  readonly code?: ErrorCode
  readonly message: string
  readonly fields: ErrorFields
  readonly stack: string
}

/** Deeper chains of causes are cut. */
const causesMax = 8

/** The nearest ShuffleError in the chain of causes decides the code. */
export function describeTaskError(error: unknown): TaskError {
  let at: unknown = error
  for (let depth = 0; depth < causesMax && at instanceof Error; depth++) {
    if (at instanceof ShuffleError) {
      return { code: at.code, message: at.message, fields: at.fields, stack: stackOf(error) }
    }
    at = at.cause
  }
  const message = error instanceof Error ? error.message : String(error)
  return { message, fields: {}, stack: stackOf(error) }
}

/** The error to throw for a task's. */
export function errorOfTask(error: TaskError, fields: ErrorFields = {}): Error {
  if (error.code === undefined) {
    const plain = new Error(error.message)
    plain.stack = error.stack
    return plain
  }
  return new ShuffleError(error.code, error.message, { fields: { ...fields, ...error.fields } })
}

/** What the job master does about a failed attempt. */
export type TaskErrorKind = 'produce-again' | 'try-again' | 'fail'

export function kindOfTaskError(error: TaskError): TaskErrorKind {
  // A task's own error may be a passing one of its machine: it gets its attempts.
  if (error.code === undefined) return 'try-again'
  const { action } = errorTable[error.code]
  if (action === 'produce-again') {
    return error.fields['partitionIndex'] === undefined ? 'try-again' : 'produce-again'
  }
  // The gate has waited for its deadline: whoever should have written it did not.
  if (error.code === 'PARTITION_NOT_READY') return 'produce-again'
  return action === 'fail' ? 'fail' : 'try-again'
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
