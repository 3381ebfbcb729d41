// What an HTTP answer says to a call of the manager's contract: its content, or the error that it
// carries. Whatever else may answer at the manager's address, a proxy or another service, is told from
// it: by the header that names the manager on each of its answers, and by what the call promises.

import { ShuffleError, isErrorCode } from '../common/errors.ts'
import type { HttpAnswer } from './http-transport.ts'
import type { Route } from './route.ts'
import { headers, type ErrorAnswer } from './schemas.ts'

/** Throws the error that it carries; PROTOCOL or NO_MANAGER when it is not one of a manager. */
export function contentOf(
  route: Pick<Route, 'method' | 'path' | 'answer'>,
  answer: HttpAnswer,
  url: string,
): unknown {
  const call = `${route.method} ${route.path} at ${url}`
  const content = parse(answer.body)
  if (answer.status >= 400) {
    throw errorOf(content) ?? stranger(call, answer, 'without an error that is known')
  }
  if (answer.headers[headers.managerEpoch] === undefined) {
    throw stranger(call, answer, `without the header ${headers.managerEpoch}`)
  }
  const lacking = lackOf(route.answer, content)
  if (lacking !== undefined) throw stranger(call, answer, `without ${lacking} in its body`)
  return content
}

/** Undefined when it is no JSON. */
function parse(body: string): unknown {
  try {
    return body === '' ? {} : JSON.parse(body)
  } catch {
    return undefined
  }
}

function errorOf(content: unknown): ShuffleError | undefined {
  const error = (content as Partial<ErrorAnswer> | null | undefined)?.error
  if (typeof error?.message !== 'string') return undefined
  const code = isErrorCode(error.code) ? error.code : 'PROTOCOL'
  return new ShuffleError(code, error.message, { fields: { ...error.fields } })
}

/** As far as callers count on it: a newer manager may know more values of a field, and more fields. */
interface Shape {
  readonly type?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Shape>>
}

/** What content of this schema has and this has not; undefined when nothing is missing. */
function lackOf(schema: Shape, content: unknown): string | undefined {
  if (kindOf(content) !== 'object') return 'an object'
  const fields = content as Readonly<Record<string, unknown>>
  const { required = [], properties = {} } = schema
  return Object.keys(properties).find((name) => {
    if (fields[name] === undefined) return required.includes(name)
    const type = properties[name]?.type
    return type !== undefined && kindOf(fields[name]) !== (type === 'integer' ? 'number' : type)
  })
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

/** What a proxy says while the manager behind it is away. */
const proxyStatuses = [502, 503, 504]

function stranger(call: string, { status, headers }: HttpAnswer, lack: string): ShuffleError {
  const fields = {
    status,
    contentType: text(headers['content-type']),
    server: text(headers['server']),
  }
  if (proxyStatuses.includes(status)) {
    return new ShuffleError(
      'NO_MANAGER',
      `a proxy before the shuffle manager answers with status ${String(status)}: the manager does not run, or can't be reached from there`,
      { fields },
    )
  }
  const traits = [`status ${String(status)}`, fields.contentType, fields.server]
  const known = traits.filter((trait) => trait !== undefined).join(', ')
  return new ShuffleError(
    'PROTOCOL',
    `what answers ${call} is not a shuffle manager: ${known}, ${lack}; check the manager's URL, and the proxies on the way to it`,
    { fields },
  )
}

function text(header: HttpAnswer['headers'][string]): string | undefined {
  return typeof header === 'string' ? header : undefined
}
