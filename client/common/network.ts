// Seam: sockets, in the shape that the fast path needs: reads go into the caller's memory, writes
// are gather lists. HTTP runs through it too, as plain duplex streams handed to the libraries.

import type { Duplex } from 'node:stream'

export interface Address {
  /** A name or an IP address; names are resolved at each dial. */
  readonly host: string
  readonly port: number
}

/** What a {@link Connection} calls; set once by {@link Connection.start}. Never calls re-entrantly. */
export interface ConnectionHandler {
  /**
   * `bytes` have arrived. They are a view of the connection's own read memory, valid only during
   * the call: copy what must stay.
   */
  onBytes(bytes: Uint8Array): void
  /** All that was written has been handed to the system: `bufferedBytes` is 0 again. */
  onDrain(): void
  /** The last call. `error` is undefined after an orderly end by either side. */
  onClose(error: Error | undefined): void
}

/** A byte stream between two processes. */
export interface Connection {
  readonly remote: Address
  /** Begins to read. Called exactly once; nothing is read before. */
  start(handler: ConnectionHandler): void
  /**
   * Writes all parts in order, as one gather list. The memory belongs to the connection until
   * `onWritten` is called: with no argument when the system has taken all of it, with an error
   * when the connection ended first. Called exactly once, never synchronously.
   */
  write(parts: readonly Uint8Array[], onWritten?: (error?: Error) => void): void
  /** Bytes written and not yet taken by the system. */
  readonly bufferedBytes: number
  /** Sends what is buffered, then closes; nothing more is delivered, and no more drains are told. */
  end(): void
  /** Closes at once; idempotent. `onClose` follows. */
  destroy(error?: Error): void
}

export interface Listener {
  /** With the port that was really taken. */
  readonly address: Address
  /** Stops to accept; open connections stay. Resolves when the port is free. */
  close(): Promise<void>
}

export interface ConnectOptions extends Address {
  /** Rejects with an Error whose `code` is ETIMEDOUT when no connection stands by then. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface Network {
  /** Port 0 takes a free one. Rejects with the system's error (`code` EADDRINUSE, …). */
  listen(address: Address, onConnection: (connection: Connection) => void): Promise<Listener>
  /** Rejects with the system's error (`code` ECONNREFUSED, ENOTFOUND, …). */
  connect(options: ConnectOptions): Promise<Connection>
  /** For HTTP servers: like {@link listen}, with Node streams. */
  listenStreams(address: Address, onStream: (stream: Duplex) => void): Promise<Listener>
  /** For HTTP clients: like {@link connect}, with a Node stream. */
  connectStream(options: ConnectOptions): Promise<Duplex>
}
