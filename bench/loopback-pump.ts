// The network reference: bytes from one process to another over loopback, in gather lists, with
// nothing around them.

import { connect, createServer, type Server, type Socket } from 'node:net'

const frameBytes = 32 * 1024
const framesPerWrite = 32

export interface Sink {
  readonly port: number
  /** Resolves when so many bytes have come, and so many connections have ended. */
  received(bytes: number): Promise<void>
  close(): void
}

export async function openSink(): Promise<Sink> {
  let received = 0
  let waiting: { bytes: number; resolve: () => void } | undefined
  const server: Server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      received += bytes.length
      if (waiting === undefined || received < waiting.bytes) return
      received -= waiting.bytes
      waiting.resolve()
      waiting = undefined
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    received: (bytes) =>
      new Promise((resolve) => {
        if (received >= bytes) {
          received -= bytes
          resolve()
        } else waiting = { bytes, resolve }
      }),
    close: () => server.close(),
  }
}

/** Sends whole writes over so many connections; answers the bytes when all are taken. */
export async function pump(options: {
  readonly port: number
  readonly connectionCount: number
  readonly totalBytes: number
}): Promise<number> {
  const writeBytes = frameBytes * framesPerWrite
  const writes = Math.max(1, Math.floor(options.totalBytes / writeBytes / options.connectionCount))
  const frame = Buffer.alloc(frameBytes, 7)
  await Promise.all(
    Array.from({ length: options.connectionCount }, () => pumpOne(options.port, { frame, writes })),
  )
  return writes * writeBytes * options.connectionCount
}

async function pumpOne(
  port: number,
  load: { readonly frame: Buffer; readonly writes: number },
): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  for (let count = 0; count < load.writes; count += 1) {
    await new Promise<void>((resolve, reject) => {
      socket.cork()
      for (let index = 1; index < framesPerWrite; index += 1) socket.write(load.frame)
      socket.write(load.frame, (error) => {
        if (error instanceof Error) reject(error)
        else resolve()
      })
      socket.uncork()
    })
  }
  socket.end()
}
