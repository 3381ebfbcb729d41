// The real Network: TCP through node:net. Connections read through real-socket.ts; streams for HTTP
// are Node's own sockets.

import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, ServerOpts, Socket } from 'node:net'
import type { Address, ConnectOptions, Listener, Network } from './network.ts'
import { RealConnection } from './real-connection.ts'
import { acceptSocket, dialSocket } from './real-socket.ts'

/** Connections that the system may hold before they are accepted: a stage starts all at once. */
const backlogConnections = 1024

export const realNetwork: Network = {
  listen(address, onConnection) {
    return listen(address, { pauseOnConnect: true }, (socket) => {
      onConnection(new RealConnection(acceptSocket(socket)))
    })
  },

  async connect(options) {
    options.signal?.throwIfAborted()
    const source = dialSocket(options)
    await connected(source.socket, options)
    return new RealConnection(source)
  },

  listenStreams(address, onStream) {
    // Half-open as Node's own HTTP server has it: a client may end its side after the request.
    return listen(address, { allowHalfOpen: true }, (socket) => {
      ignoreErrors(socket)
      onStream(socket)
    })
  },

  async connectStream(options) {
    options.signal?.throwIfAborted()
    const socket = connect({ host: options.host, port: options.port })
    await connected(socket, options)
    return socket
  },
}

function listen(
  address: Address,
  options: ServerOpts,
  onSocket: (socket: Socket) => void,
): Promise<Listener> {
  const server = createServer({ ...options, noDelay: true }, onSocket)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const where = { host: address.host, port: address.port, backlog: backlogConnections }
    server.listen(where, () => {
      server.off('error', reject)
      // What may come now is one accept that failed (EMFILE, a peer gone): that peer's loss alone.
      server.on('error', () => undefined)
      resolve(listenerOf(server, address.host))
    })
  })
}

function listenerOf(server: Server, host: string): Listener {
  const { port } = server.address() as AddressInfo
  let closing: Promise<void> | undefined
  return {
    address: { host, port },
    close: () => {
      // The port is free as soon as the handle is closed; the callback of close() would wait for
      // every open connection.
      closing ??= new Promise((resolve) => {
        server.close()
        setImmediate(resolve)
      })
      return closing
    },
  }
}

/** Resolves when `socket` stands; otherwise destroys it and rejects with the reason. */
function connected(socket: Socket, options: ConnectOptions): Promise<void> {
  const { signal, timeoutMs, host, port } = options
  ignoreErrors(socket)
  return new Promise((resolve, reject) => {
    const settle = (error: Error | undefined) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      socket.off('connect', onConnect)
      socket.off('error', settle)
      if (error === undefined) {
        resolve()
        return
      }
      socket.destroy()
      reject(error)
    }
    const onConnect = () => {
      socket.setNoDelay(true)
      settle(undefined)
    }
    const onAbort = () => {
      settle(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      const what = `no connection to ${host}:${String(port)} within ${String(timeoutMs)} ms`
      settle(Object.assign(new Error(what), { code: 'ETIMEDOUT' }))
    }, timeoutMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.once('connect', onConnect)
    socket.once('error', settle)
  })
}

/** Errors arrive through other ways; without a listener Node would end the process. */
function ignoreErrors(socket: Socket): void {
  socket.on('error', () => undefined)
}
