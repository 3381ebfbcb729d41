// What an HTTP port takes at a time: connections, calls under way, and the bytes of their bodies. Owned
// by the port of a service. A peer that sends half a request and falls silent holds nothing that another
// one needs: the place of an idle connection goes to a newcomer, and a body that is late makes room.
//
//   connection ─ admit ─> stays ─ begin ─> call (receives, works, answers) ─ over ─> stays … closed
//
// A call is over when it is answered, and also when its connection went: but not before its work ended,
// or else reconnecting would be a way past the limit.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../common/clock.ts'
import { ShuffleError } from '../common/errors.ts'

export interface HttpLimits {
  /** Past it the connection that has been without a call for the longest gives way, else the new one. */
  readonly connectionsMax: number
  /** Calls under way, long polls included; more are answered BUSY. */
  readonly callsMax: number
  /** Bodies of the calls under way, together; past it a call is answered BUSY. */
  readonly bodiesBytesMax: number
}

/** How long a body may take when others need its room. */
export const bodyTimeMs = 30_000

export interface HttpStream {
  readonly destroyed: boolean
  destroy(): unknown
}

export interface HttpCall {
  readonly stream: HttpStream
  readonly bodyBytes: number
  readonly startedMs: number
  isReceived: boolean
  /** The work is done: an answer is ready, whether or not anybody takes it. */
  isWorkDone: boolean
  isOver: boolean
}

export class HttpAdmission {
  readonly #clock: Clock
  readonly #limits: HttpLimits
  /** In the order in which they became idle: one that ends its last call goes to the end. */
  readonly #streams = new Map<HttpStream, Set<HttpCall>>()
  readonly #calls = new Set<HttpCall>()
  #bodiesBytes = 0

  constructor(clock: Clock, limits: HttpLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  get connections(): number {
    return this.#streams.size
  }

  get calls(): number {
    return this.#calls.size
  }

  get bodiesBytes(): number {
    return this.#bodiesBytes
  }

  /** Whether the connection may stay; if so, `closed` is called when it closes. */
  admit(stream: HttpStream): boolean {
    if (this.#streams.size >= this.#limits.connectionsMax) {
      const idle = this.#longestIdle()
      if (idle === undefined) return false
      idle.destroy()
      this.closed(idle)
    }
    this.#streams.set(stream, new Set())
    return true
  }

  /** Idempotent. */
  closed(stream: HttpStream): void {
    const calls = this.#streams.get(stream)
    this.#streams.delete(stream)
    for (const call of calls ?? []) {
      // Whatever is received is worked on to its end, though nobody waits for it.
      if (!call.isReceived || call.isWorkDone) this.over(call)
    }
  }

  /** Throws BUSY, and counts nothing then. */
  begin(stream: HttpStream, bodyBytes: number): HttpCall {
    const { callsMax, bodiesBytesMax } = this.#limits
    if (this.#calls.size >= callsMax) {
      throw new ShuffleError('BUSY', `${String(callsMax)} calls are under way, as many as may be`, {
        fields: { callsMax },
      })
    }
    if (this.#bodiesBytes + bodyBytes > bodiesBytesMax) this.#cutLateBodies()
    if (this.#bodiesBytes + bodyBytes > bodiesBytesMax) {
      throw new ShuffleError(
        'BUSY',
        `the bodies of the calls under way have ${String(this.#bodiesBytes)} bytes, of ${String(bodiesBytesMax)} at most`,
        { fields: { bodiesBytesMax } },
      )
    }
    const startedMs = this.#clock.nowMs()
    const call = { stream, bodyBytes, startedMs, isReceived: bodyBytes === 0 }
    const begun: HttpCall = { ...call, isWorkDone: false, isOver: false }
    this.#calls.add(begun)
    this.#bodiesBytes += bodyBytes
    this.#streams.get(stream)?.add(begun)
    return begun
  }

  received(call: HttpCall): void {
    call.isReceived = true
  }

  /** An answer is ready; with its connection gone there is nothing more to wait for. */
  workDone(call: HttpCall): void {
    call.isWorkDone = true
    if (call.stream.destroyed) this.over(call)
  }

  /** The answer has gone out, or nobody is there to take it. Idempotent. */
  over(call: HttpCall): void {
    if (call.isOver) return
    call.isOver = true
    this.#calls.delete(call)
    this.#bodiesBytes -= call.bodyBytes
    const ofStream = this.#streams.get(call.stream)
    ofStream?.delete(call)
    if (ofStream?.size !== 0) return
    this.#streams.delete(call.stream)
    this.#streams.set(call.stream, ofStream)
  }

  destroyAll(): void {
    for (const stream of [...this.#streams.keys()]) stream.destroy()
  }

  #longestIdle(): HttpStream | undefined {
    for (const [stream, calls] of this.#streams) if (calls.size === 0) return stream
    return undefined
  }

  #cutLateBodies(): void {
    const lateMs = this.#clock.nowMs() - bodyTimeMs
    for (const call of [...this.#calls]) {
      if (call.isReceived || call.startedMs > lateMs) continue
      call.stream.destroy()
      this.closed(call.stream)
      this.over(call)
    }
  }
}

/** Whether the process is alive and ready is answered however much there is to do. */
const probes = ['/healthz', '/readyz']

/**
 * Has `admission` decide on each call of `app`. After the hook that checks access, if there is one: a
 * stranger's call is answered at once and takes nothing.
 */
export function addAdmission(
  app: FastifyInstance,
  admission: HttpAdmission,
  bodyBytesMax: number,
): void {
  const calls = new WeakMap<FastifyRequest, HttpCall>()
  app.addHook('onRequest', (request, _reply, done) => {
    if (!probes.includes(request.url)) {
      const bodyBytes = announcedBodyBytes(request.headers, bodyBytesMax)
      calls.set(request, admission.begin(request.raw.socket, bodyBytes))
    }
    done()
  })
  // Tells the admission, unless the call is none of its.
  const teller = (step: 'received' | 'workDone' | 'over') => (request: FastifyRequest) => {
    const call = calls.get(request)
    if (call !== undefined) admission[step](call)
  }
  const [received, workDone, over] = [teller('received'), teller('workDone'), teller('over')]
  app.addHook('preValidation', (request, _reply, done) => {
    received(request)
    done()
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    workDone(request)
    done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    over(request)
    done()
  })
}

/** What a request with these headers may send as its body. */
function announcedBodyBytes(
  headers: Readonly<Record<string, unknown>>,
  bodyBytesMax: number,
): number {
  if (headers['transfer-encoding'] !== undefined) return bodyBytesMax
  const length = Number(headers['content-length'] ?? 0)
  // One that says more is refused as it comes.
  return Number.isFinite(length) && length > 0 ? Math.min(length, bodyBytesMax) : 0
}
