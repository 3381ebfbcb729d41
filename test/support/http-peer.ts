// An HTTP server in a virtual world that answers as a test says, as a manager does unless the test gives
// headers of its own, and notes what it was asked.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { VirtualProcess, VirtualWorld } from './virtual-world.ts'

export interface PeerRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Undefined: no answer at all. */
export type PeerAnswer =
  | {
      readonly status?: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: unknown
    }
  | undefined

export class HttpPeer {
  readonly process: VirtualProcess
  readonly requests: PeerRequest[] = []
  answer: (request: PeerRequest) => PeerAnswer = () => ({ body: {} })

  constructor(process: VirtualProcess) {
    this.process = process
  }

  static async start(world: VirtualWorld, host: string, port: number): Promise<HttpPeer> {
    const peer = new HttpPeer(world.start(host))
    const server = createServer({ connectionsCheckingInterval: 0 }, (request, response) => {
      peer.#take(request, response)
    })
    server.keepAliveTimeout = 0
    await world.drive(
      peer.process.network.listenStreams({ host: '0.0.0.0', port }, (stream) => {
        server.emit('connection', stream)
      }),
    )
    return peer
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const taken = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      }
      this.requests.push(taken)
      const answer = this.answer(taken)
      if (answer === undefined) return
      const headers = answer.headers ?? { 'sluice-manager-epoch': '1' }
      response.writeHead(answer.status ?? 200, headers)
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    })
  }
}
