import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { answerMalformed } from '../../../client/manager/http-malformed.ts'

async function answerTo(request: string): Promise<string> {
  const server = createServer().on('clientError', answerMalformed)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  try {
    socket.write(request)
    return await text(socket)
  } finally {
    socket.destroy()
    server.close()
  }
}

test('what is no request is answered in the form of the contract, and the connection ends', async () => {
  const [head = '', body = ''] = (await answerTo('no request\r\n\r\n')).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
  expect(head).toContain(`content-length: ${String(body.length)}`)
  expect(JSON.parse(body)).toEqual({
    error: { code: 'INVALID_ARGUMENT', message: 'what came is not an HTTP request', fields: {} },
  })
})

test('headers past the limit are refused by that name', async () => {
  const answer = await answerTo(`GET / HTTP/1.1\r\nhost: m\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1.1 431 .*have more bytes than are taken/s)
})

test('a connection that has gone is left alone', () => {
  const gone = { destroyed: true } as never
  expect(() => {
    answerMalformed(new Error('gone'), gone)
  }).not.toThrow()
})
