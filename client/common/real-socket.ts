// How bytes leave Node's sockets. With `onread` Node reads into one fixed buffer per connection, at
// about half the processor time of 'data' events, which allocate 64 KiB for each read. Node offers it
// for sockets that connect, but not for those that a server accepts; there the accepted handle is
// wrapped a second time. That uses `_handle` and the constructor's `handle`, which are not public:
// where they are missing or refuse, the 'data' events of the accepted socket serve instead.

import { connect, Socket } from 'node:net'
import type { ConnectOptions } from './network.ts'

/**
 * Larger is slower: 64 KiB stays in the cache and in step with the receive window (measured: 5.7 GB/s
 * against 2.5 with 256 KiB, one connection on loopback).
 */
const readBufferBytes = 64 * 1024

/** A connected socket that reads nothing until `start`. */
export interface ByteSource {
  readonly socket: Socket
  readonly isFixedBuffer: boolean
  start(onBytes: (bytes: Uint8Array) => void): void
}

interface OnreadOptions {
  readonly buffer: Uint8Array
  readonly callback: (byteCount: number, buffer: Uint8Array) => boolean
}

/** Begins to connect; the caller waits for 'connect' and owns the socket. */
export function dialSocket(options: Pick<ConnectOptions, 'host' | 'port'>): ByteSource {
  return fixedBufferSource((onread) => {
    const socket = connect({ host: options.host, port: options.port, onread })
    socket.pause()
    return socket
  })
}

/** Takes over a socket that a server with `pauseOnConnect` accepted. */
export function acceptSocket(accepted: Socket): ByteSource {
  return rewrapSocket(accepted) ?? dataEventSource(accepted)
}

/** Undefined where this Node doesn't let the handle go; the accepted socket is then untouched. */
export function rewrapSocket(accepted: Socket): ByteSource | undefined {
  const holder = accepted as unknown as { _handle?: object | null }
  const handle = holder._handle
  if (handle === undefined || handle === null) return undefined
  try {
    const source = fixedBufferSource((onread) => {
      // @ts-expect-error `handle` is not in the public types.
      return new Socket({ handle, onread, pauseOnCreate: true })
    })
    holder._handle = null
    // Without a handle this only takes it off its server's count of connections.
    accepted.destroy()
    return source
  } catch {
    return undefined
  }
}

export function dataEventSource(socket: Socket): ByteSource {
  return {
    socket,
    isFixedBuffer: false,
    start: (onBytes) => {
      socket.on('data', onBytes)
      socket.resume()
    },
  }
}

function fixedBufferSource(open: (onread: OnreadOptions) => Socket): ByteSource {
  let deliver: ((bytes: Uint8Array) => void) | undefined
  const socket = open({
    buffer: Buffer.allocUnsafeSlow(readBufferBytes),
    callback: (byteCount, buffer) => {
      deliver?.(buffer.subarray(0, byteCount))
      return true
    },
  })
  return {
    socket,
    isFixedBuffer: true,
    start: (onBytes) => {
      deliver = onBytes
      socket.resume()
    },
  }
}
