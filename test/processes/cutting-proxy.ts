// A TCP proxy before one port: cuts each connection after a given byte of either direction, or delays
// what it passes on.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export interface ProxyPlan {
  /** Bytes of that direction after which both ends are reset; never unless given. */
  readonly cutAfter?: { readonly direction: 'up' | 'down'; readonly bytes: number }
  readonly delayMs?: number
  /** Only so many connections; later ones pass whole. */
  readonly times?: number
}

export class CuttingProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #targetPort: number
  plan: ProxyPlan = {}
  /** Connections that were cut. */
  cuts = 0
  readonly passed = { up: 0, down: 0 }
  #strikes = 0

  private constructor(targetPort: number) {
    this.#targetPort = targetPort
    this.#server = createServer((client) => {
      this.#accept(client)
    })
  }

  static async before(targetPort: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(targetPort)
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  #accept(client: Socket): void {
    const worker = connect(this.#targetPort, '127.0.0.1')
    const plan = this.#strikes < (this.plan.times ?? Infinity) ? this.plan : {}
    this.#strikes += 1
    this.#pass(client, worker, 'up', plan)
    this.#pass(worker, client, 'down', plan)
  }

  #pass(from: Socket, to: Socket, direction: 'up' | 'down', plan: ProxyPlan): void {
    this.#sockets.add(from)
    let left = plan.cutAfter?.direction === direction ? plan.cutAfter.bytes : Infinity
    from.on('data', (bytes) => {
      const length = Math.min(bytes.length, left)
      left -= length
      this.passed[direction] += length
      const send = () => {
        if (length > 0 && to.writable) to.write(bytes.subarray(0, length))
        if (left > 0) return
        this.cuts += 1
        // What was passed on leaves first.
        to.end(() => {
          from.resetAndDestroy()
          to.destroy()
        })
      }
      if (plan.delayMs === undefined) send()
      else setTimeout(send, plan.delayMs)
    })
    from.on('error', () => to.destroy())
    from.on('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
