// The one table of what can go wrong. A code is for a machine to act on: retry logic reads this
// table, never a message. The documents and the wire reference are made from it.

/**
 * What the runtime should do about an error:
 * - `produce-again`: the partition is gone or unusable, run its producer again
 * - `fail-attempt`: this attempt is over, the runtime may start another
 * - `retry-here`: the same call again, with back-off, within a deadline
 * - `retry-elsewhere`: elsewhere or later, then fail saying what was short
 * - `register-again`: register the job again, then repeat the call
 * - `fail`: no retry can help, fail with the reason
 */
export type ErrorAction =
  'produce-again' | 'fail-attempt' | 'retry-here' | 'retry-elsewhere' | 'register-again' | 'fail'

export interface ErrorDeclaration {
  /** Number on the wire (u16). A retired number is never used again. */
  readonly wireCode: number
  /** Status of an HTTP answer that carries this code. */
  readonly httpStatus: number
  /** Whether the same call may succeed when repeated unchanged. */
  readonly isRetryable: boolean
  readonly action: ErrorAction
  readonly about: string
}

function declare(
  wireCode: number,
  httpStatus: number,
  action: ErrorAction,
  about: string,
): ErrorDeclaration {
  const isRetryable =
    action === 'retry-here' || action === 'retry-elsewhere' || action === 'register-again'
  return { wireCode, httpStatus, isRetryable, action, about }
}

export const errorTable = {
  PARTITION_NOT_READY: declare(
    1,
    409,
    'retry-here',
    'The partition is being written and not yet committed.',
  ),
  PARTITION_NOT_FOUND: declare(
    2,
    404,
    'produce-again',
    'No committed partition with this key was ever seen here.',
  ),
  PARTITION_RELEASED: declare(3, 410, 'produce-again', 'The partition was released.'),
  DATA_CORRUPT: declare(
    4,
    500,
    'produce-again',
    'A checksum, a length or a format field does not match.',
  ),
  COUNT_MISMATCH: declare(
    5,
    500,
    'produce-again',
    'The number of entries, bytes or records differs from what was declared.',
  ),
  DISK_FAILED: declare(
    6,
    500,
    'produce-again',
    'A disk operation failed or missed its deadline. On a write: the attempt fails.',
  ),
  WORKER_UNREACHABLE: declare(
    7,
    503,
    'produce-again',
    'The worker did not answer within the deadline, at its present address.',
  ),
  WORKER_CHANGED: declare(
    8,
    409,
    'produce-again',
    'Another worker answers at this address and the manager knows no other.',
  ),
  WRITE_INTERRUPTED: declare(
    9,
    409,
    'fail-attempt',
    'The connection, the worker or the region was lost while the write was open.',
  ),
  WORKER_DRAINING: declare(
    10,
    503,
    'fail-attempt',
    'The worker takes no new writes: it is stopping, or was told to drain.',
  ),
  STALE_ALLOCATION: declare(
    11,
    409,
    'fail-attempt',
    'A newer allocation, epoch or release of this key is known.',
  ),
  WRITER_CONFLICT: declare(
    12,
    409,
    'fail-attempt',
    'The key already has a writer or a committed partition.',
  ),
  BUSY: declare(13, 503, 'retry-here', 'A bounded resource is in use up to its limit just now.'),
  NO_MANAGER: declare(
    14,
    503,
    'retry-here',
    'The shuffle manager does not answer or is not ready.',
  ),
  NO_SPACE: declare(
    15,
    507,
    'retry-elsewhere',
    'No disk of the worker has the space that the region needs.',
  ),
  NO_WORKER: declare(
    16,
    503,
    'retry-elsewhere',
    'No worker fits: none is registered, healthy, or has space.',
  ),
  LIMIT_EXCEEDED: declare(17, 413, 'retry-elsewhere', 'A configured limit would be passed.'),
  JOB_UNKNOWN: declare(
    18,
    404,
    'register-again',
    'The manager does not know the job: it restarted, or the job expired.',
  ),
  PROTOCOL: declare(19, 400, 'fail', 'The peer broke the protocol.'),
  UNSUPPORTED_VERSION: declare(
    20,
    400,
    'fail',
    'The two sides have no protocol version in common.',
  ),
  UNSUPPORTED_CODEC: declare(21, 400, 'fail', 'The codec of the data is unknown to its reader.'),
  UNAUTHENTICATED: declare(
    22,
    401,
    'fail',
    'The token is missing or wrong, or the cluster id differs.',
  ),
  JOB_ID_IN_USE: declare(23, 409, 'fail', 'Another living client holds this job id.'),
  SUPERSEDED: declare(24, 409, 'fail', 'Another client took the job over.'),
  INVALID_ARGUMENT: declare(
    25,
    400,
    'fail',
    'An argument, option or file is not valid; the text says which and why.',
  ),
  CANCELLED: declare(26, 499, 'fail', 'The caller cancelled, or closed what it waited for.'),
  RESYNC: declare(
    27,
    409,
    'retry-here',
    'The numbered deltas have a gap or the epoch is new: send the full list.',
  ),
} as const satisfies Record<string, ErrorDeclaration>

export type ErrorCode = keyof typeof errorTable

/** Whether a peer's word is a code that this version knows. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorTable, text)
}

/** Ids and figures of an error as fields, never only in its prose. */
export type ErrorFields = Readonly<Record<string, string | number | boolean | undefined>>

export interface ShuffleErrorOptions {
  readonly cause?: unknown
  readonly fields?: ErrorFields
}

/** The one error class. `message` says what was wrong, where, and what to do. */
export class ShuffleError extends Error {
  override readonly name = 'ShuffleError'
  readonly code: ErrorCode
  readonly fields: ErrorFields

  constructor(code: ErrorCode, message: string, options: ShuffleErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.fields = options.fields ?? {}
  }

  get isRetryable(): boolean {
    return errorTable[this.code].isRetryable
  }

  get action(): ErrorAction {
    return errorTable[this.code].action
  }
}

const codesByWireCode = new Map<number, ErrorCode>(
  (Object.keys(errorTable) as ErrorCode[]).map((code) => [errorTable[code].wireCode, code]),
)

/** The code with this number; undefined for a number that a newer peer may know. */
export function errorCodeOfWire(wireCode: number): ErrorCode | undefined {
  return codesByWireCode.get(wireCode)
}

/** Whether `error` is a {@link ShuffleError}, optionally one of the given codes. */
export function isShuffleError(
  error: unknown,
  ...codes: readonly ErrorCode[]
): error is ShuffleError {
  return error instanceof ShuffleError && (codes.length === 0 || codes.includes(error.code))
}
