// An error as an answer: its code's status, and code, text and fields in the body.

import { ShuffleError, errorTable, isShuffleError } from '../../client/common/errors.ts'
import { bodyBytesMax, type ErrorAnswer } from '../../client/manager/schemas.ts'

export interface AnsweredError {
  readonly status: number
  readonly body: ErrorAnswer
  /** Not of the caller's making: to be logged. */
  readonly isOurs: boolean
}

export function answerOf(error: unknown): AnsweredError {
  const known = isShuffleError(error) ? error : translated(error)
  if (known !== undefined)
    return { ...shaped(known, errorTable[known.code].httpStatus), isOurs: false }
  const failure = new ShuffleError('NO_MANAGER', 'the shuffle manager failed; its log says how')
  return { ...shaped(failure, 500), isOurs: true }
}

function shaped(error: ShuffleError, status: number): Omit<AnsweredError, 'isOurs'> {
  const fields: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(error.fields)) {
    if (value !== undefined) fields[name] = value
  }
  return { status, body: { error: { code: error.code, message: error.message, fields } } }
}

/** What Fastify refuses by itself. */
function translated(error: unknown): ShuffleError | undefined {
  const { code, statusCode, validation, message } = error as {
    readonly code?: string
    readonly statusCode?: number
    readonly validation?: unknown
    readonly message?: string
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ShuffleError(
      'LIMIT_EXCEEDED',
      `a body may have ${String(bodyBytesMax)} bytes; send the list in pages`,
      { fields: { bodyBytesMax } },
    )
  }
  if (validation === undefined && (statusCode === undefined || statusCode >= 500)) return undefined
  return new ShuffleError('INVALID_ARGUMENT', message ?? 'the request is malformed')
}
