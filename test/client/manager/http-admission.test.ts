import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { isShuffleError } from '../../../client/common/errors.ts'
import {
  addAdmission,
  bodyTimeMs,
  HttpAdmission,
  type HttpLimits,
} from '../../../client/manager/http-admission.ts'
import { until } from '../../support/cluster.ts'
import { deferred } from '../../support/deferred.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const wide = { connectionsMax: 100, callsMax: 100, bodiesBytesMax: 1000 }

class FakeStream {
  destroyed = false
  destroy(): void {
    this.destroyed = true
  }
}

function refusal(call: () => unknown): string | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (!isShuffleError(error)) throw error
    return error.code
  }
}

describe('admission of HTTP calls', () => {
  it('gives the place of the connection that has been idle for the longest to a newcomer', () => {
    const admission = new HttpAdmission(new VirtualClock(), { ...wide, connectionsMax: 3 })
    const [first, second, third, fourth] = Array.from({ length: 4 }, () => new FakeStream())
    for (const stream of [first, second, third]) admission.admit(stream!)
    const call = admission.begin(first!, 0)
    admission.over(call)
    expect(admission.admit(fourth!)).toBe(true)
    expect([first, second, third, fourth].map((stream) => stream!.destroyed)).toEqual([
      false,
      true,
      false,
      false,
    ])
    expect(admission.connections).toBe(3)
  })

  it('refuses a connection when every other one has a call', () => {
    const admission = new HttpAdmission(new VirtualClock(), { ...wide, connectionsMax: 1 })
    const stream = new FakeStream()
    admission.admit(stream)
    const call = admission.begin(stream, 0)
    expect(admission.admit(new FakeStream())).toBe(false)
    admission.over(call)
    expect(admission.admit(new FakeStream())).toBe(true)
    expect(stream.destroyed).toBe(true)
  })

  it('makes room by cutting bodies that are late, not those that are received', async () => {
    const clock = new VirtualClock()
    const admission = new HttpAdmission(clock, wide)
    const [late, working, fresh] = Array.from({ length: 3 }, () => new FakeStream())
    for (const stream of [late, working, fresh]) admission.admit(stream!)
    admission.begin(late!, 400)
    const received = admission.begin(working!, 300)
    admission.received(received)
    await clock.advance(bodyTimeMs)
    admission.begin(fresh!, 300)
    expect(refusal(() => admission.begin(new FakeStream(), 401))).toBe('BUSY')
    expect([late, working, fresh].map((stream) => stream!.destroyed)).toEqual([true, false, false])
    expect(refusal(() => admission.begin(new FakeStream(), 400))).toBeUndefined()
    expect(admission.bodiesBytes).toBe(1000)
  })

  it('counts a call whose connection went until its work is done', () => {
    const admission = new HttpAdmission(new VirtualClock(), wide)
    const stream = new FakeStream()
    admission.admit(stream)
    const [receiving, working, answering] = [5, 5, 0].map((bytes) => admission.begin(stream, bytes))
    admission.received(working!)
    admission.workDone(answering!)
    stream.destroy()
    admission.closed(stream)
    expect([receiving, working, answering].map((call) => call!.isOver)).toEqual([true, false, true])
    admission.workDone(working!)
    expect([admission.calls, admission.bodiesBytes, admission.connections]).toEqual([0, 0, 0])
    admission.over(working!)
    expect(admission.calls).toBe(0)
  })
})

describe('admission at a port', () => {
  let server: Server | undefined
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
  })

  async function portWith(limits: Partial<HttpLimits>) {
    const admission = new HttpAdmission(new VirtualClock(), { ...wide, ...limits })
    const gate = deferred<undefined>()
    const app = fastify({
      serverFactory: (handler) => {
        const made = createServer(handler)
        server = made
        made.on('connection', (socket) => {
          if (!admission.admit(socket)) socket.destroy()
          else
            socket.once('close', () => {
              admission.closed(socket)
            })
        })
        return made
      },
    })
    addAdmission(app, admission, 1000)
    app.get('/wait', async () => {
      await gate.promise
      return { waited: true }
    })
    app.post('/take', () => ({ taken: true }))
    await app.ready()
    server?.listen(0, '127.0.0.1')
    await once(server!, 'listening')
    return { admission, gate, port: (server!.address() as AddressInfo).port }
  }

  it('counts pipelined calls of one connection, and forgets them when it is cut and they end', async () => {
    const { admission, gate, port } = await portWith({ callsMax: 3 })
    const peer = connect(port, '127.0.0.1')
    let text = ''
    peer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    peer.on('error', () => undefined)
    peer.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(5))
    await until('three wait', () => admission.calls === 3)
    peer.destroy()
    await until('the connection is gone', () => admission.connections === 0)
    expect(admission.calls).toBe(3)
    gate.resolve(undefined)
    await until('all are over', () => admission.calls === 0)
    expect(text).toBe('')
  })

  it('answers what is past the limit, and the same connection goes on', async () => {
    const { admission, gate, port } = await portWith({ callsMax: 1 })
    const waiting = fetch(`http://127.0.0.1:${String(port)}/wait`)
    await until('one waits', () => admission.calls === 1)
    const refused = await fetch(`http://127.0.0.1:${String(port)}/wait`)
    expect(refused.ok).toBe(false)
    gate.resolve(undefined)
    expect(await (await waiting).json()).toEqual({ waited: true })
    const taken = await fetch(`http://127.0.0.1:${String(port)}/take`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(await taken.json()).toEqual({ taken: true })
    await until('all are over', () => admission.calls === 0 && admission.bodiesBytes === 0)
  })

  it.each([
    [
      'half a body',
      'POST /take HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"a',
    ],
    [
      'a body in pieces',
      'POST /take HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n',
    ],
  ])('forgets a call whose peer goes after %s', async (_what, sent) => {
    const { admission, port } = await portWith({})
    const peer = connect(port, '127.0.0.1')
    peer.on('error', () => undefined)
    peer.write(sent)
    await until('it has begun', () => admission.calls === 1)
    expect(admission.bodiesBytes).toBeGreaterThan(0)
    peer.destroy()
    await until('nothing is left', () => admission.calls + admission.bodiesBytes === 0)
  })
})
