// Pooled memory. Ownership is in the signature: who takes a PooledBuffer recycles it or hands it
// on, on every path, exactly once.

export interface PooledBuffer {
  /** The whole memory of the buffer; how much of it is filled is its owner's to know. */
  readonly bytes: Uint8Array
  /** Gives the memory back. A second call is an assertion failure. */
  recycle(): void
}
