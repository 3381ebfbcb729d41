// Sees the requests and answers of the control plane as they pass a stream: their names, the codes of
// errors, and which requests still wait for their answer.

import type { Duplex } from 'node:stream'
import { errorTable, type ErrorCode } from '../../client/common/errors.ts'

export interface SeenHttp {
  /** `HTTP`, method and path; `HTTP answer` before it in an answer. */
  readonly name: string
  readonly bytes: number
  readonly code?: ErrorCode | undefined
}

type Push = (chunk: unknown, encoding?: BufferEncoding) => boolean
type Write = (...args: unknown[]) => boolean

const headTextMax = 4_096
/** Holds the first line of any request or answer. */
const headLengthMax = 300
/** The first of a status from 400 on. */
const digitOfErrors = '4'.charCodeAt(0)

/** The end of a stream that asks: `onAsked` for each request, `onDone` when its answer is complete. */
export function watchAsking(
  stream: Duplex,
  handler: { readonly onAsked: (seen: SeenHttp) => void; readonly onDone: () => void },
): void {
  const answer = new AnswerScanner(handler.onDone)
  const write = stream.write.bind(stream) as Write
  stream.write = ((...args: unknown[]) => {
    const chunk = args[0] as string | Uint8Array
    const name = requestNameIn(textOf(chunk))
    if (name !== undefined) {
      answer.restart()
      handler.onAsked({ name, bytes: chunk.length })
    }
    return write(...args)
  }) as typeof stream.write
  const push = stream.push.bind(stream) as Push
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    // The memory is the library's afterwards.
    if (chunk instanceof Uint8Array) answer.scan(chunk)
    return push(chunk, encoding)
  }
  stream.once('close', handler.onDone)
}

/** The end of a stream that answers. */
export function watchAnswering(stream: Duplex, onAnswer: (seen: SeenHttp) => void): void {
  let head = ''
  const push = stream.push.bind(stream) as Push
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array && head.length < headTextMax) head += textOf(chunk)
    return push(chunk, encoding)
  }
  const write = stream.write.bind(stream) as Write
  stream.write = ((...args: unknown[]) => {
    const chunk = args[0] as string | Uint8Array
    const text = textOf(chunk)
    if (text.startsWith('HTTP/1.1 ')) {
      const isError = text.charCodeAt(9) >= digitOfErrors
      const code = isError ? errorCodeIn(textOf(chunk, Infinity)) : undefined
      onAnswer({
        name: `HTTP answer${requestNameIn(head)?.slice(4) ?? ''} ${text.slice(9, 12)}`,
        bytes: chunk.length,
        code,
      })
      head = ''
    }
    return write(...args)
  }) as typeof stream.write
}

function errorCodeIn(text: string): ErrorCode | undefined {
  const code = /"error":\{"code":"([A-Z_]+)"/.exec(text)?.[1]
  return code !== undefined && Object.hasOwn(errorTable, code) ? (code as ErrorCode) : undefined
}

function textOf(chunk: string | Uint8Array, lengthMax = headLengthMax): string {
  if (typeof chunk === 'string') return chunk.slice(0, lengthMax)
  const length = Math.min(lengthMax, chunk.byteLength)
  return Buffer.from(chunk.buffer, chunk.byteOffset, length).toString('latin1')
}

function requestNameIn(text: string): string | undefined {
  const match = /^(GET|PUT|POST|DELETE) (\S+) HTTP/.exec(text)
  return match === null ? undefined : `HTTP ${match[1] ?? ''} ${routeOf(match[2] ?? '')}`
}

/** The path with names instead of ids. */
function routeOf(path: string): string {
  return path.replace(/\?.*$/, '').replace(/(jobs|workers|data-sets)\/(?!heartbeat)[^/]+/g, '$1/*')
}

/** Finds the end of an answer, by its length. */
class AnswerScanner {
  readonly #onDone: () => void
  #head = ''
  #bodyLeft: number | undefined

  constructor(onDone: () => void) {
    this.#onDone = onDone
  }

  restart(): void {
    this.#head = ''
    this.#bodyLeft = undefined
  }

  scan(bytes: Uint8Array): void {
    if (this.#bodyLeft !== undefined) {
      this.#take(bytes.length)
      return
    }
    this.#head += textOf(bytes, Infinity)
    const end = this.#head.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1]
    this.#bodyLeft = Number(length ?? 0)
    this.#take(this.#head.length - end - 4)
  }

  #take(count: number): void {
    this.#bodyLeft = (this.#bodyLeft ?? 0) - count
    if (this.#bodyLeft <= 0) this.#onDone()
  }
}
