// Seam: work given to other threads. Never on the loop that serves channels: compressing and large
// sorts.

export interface Compute {
  /** The raw LZ4 block of `bytes`, without a size before it; may be longer than `bytes`. */
  compress(bytes: Uint8Array): Promise<Uint8Array>
  /**
   * The inverse; `sizeBytes` is the exact size of the result. Rejects with DATA_CORRUPT when the
   * block is malformed or has another size.
   */
  uncompress(block: Uint8Array, sizeBytes: number): Promise<Uint8Array>
}
