// The one place where an error of a partition's work gets the ids it concerns. Used by partitions,
// gates and their channels.

import { AssertionFailure } from '../common/assert.ts'
import { ShuffleError, type ErrorFields } from '../common/errors.ts'

/**
 * `error` with `fields` added to its own. What is no ShuffleError is either a broken invariant of
 * ours, told as PROTOCOL so that nobody retries it, or the reason of an abort: CANCELLED.
 */
export function withFields(error: unknown, fields: ErrorFields): ShuffleError {
  if (error instanceof ShuffleError) {
    return new ShuffleError(error.code, error.message, {
      cause: error.cause ?? error,
      fields: { ...fields, ...error.fields },
    })
  }
  const code = error instanceof AssertionFailure ? 'PROTOCOL' : 'CANCELLED'
  return new ShuffleError(code, error instanceof Error ? error.message : String(error), {
    cause: error,
    fields,
  })
}
