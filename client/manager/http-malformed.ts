// What an HTTP port answers to what is no request: Node's parser refuses it before any route is looked
// for, so the answer is written as bytes, in the form that all errors of the contract have.

import type { Duplex } from 'node:stream'
import type { ErrorAnswer } from './schemas.ts'

const noRequest = { status: '400 Bad Request', message: 'what came is not an HTTP request' }
const tooLarge = {
  status: '431 Request Header Fields Too Large',
  message: 'address and headers of a request have more bytes than are taken',
}

/** Answers, and ends the connection: where the next request begins is not known. */
export function answerMalformed(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const { status, message } = error.code === 'HPE_HEADER_OVERFLOW' ? tooLarge : noRequest
  const answer: ErrorAnswer = { error: { code: 'INVALID_ARGUMENT', message, fields: {} } }
  const body = JSON.stringify(answer)
  const lines = [
    `HTTP/1.1 ${status}`,
    `content-length: ${String(Buffer.byteLength(body))}`,
    'content-type: application/json; charset=utf-8',
    'connection: close',
    '',
    body,
  ]
  socket.end(lines.join('\r\n'), () => {
    socket.destroy(error)
  })
}
