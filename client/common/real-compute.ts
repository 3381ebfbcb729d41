// The real Compute: LZ4 on Node's thread pool through lz4-napi. Its block format is the
// uncompressed size as u32, little-endian, and then the raw block; ours is the raw block alone.

import { compress, uncompress } from 'lz4-napi'
import type { Compute } from './compute.ts'
import { ShuffleError } from './errors.ts'

const sizePrefixBytes = 4
/** An LZ4 block can't grow by more than this factor; a larger claim is refused before allocation. */
const expansionMax = 255

export const realCompute: Compute = {
  async compress(bytes) {
    const sized = await compress(bytes)
    return sized.subarray(sizePrefixBytes)
  },

  async uncompress(block, sizeBytes) {
    if (sizeBytes < 0 || sizeBytes > block.byteLength * expansionMax) {
      throw corrupt('claims an impossible size', block, sizeBytes)
    }
    const sized = Buffer.allocUnsafe(sizePrefixBytes + block.byteLength)
    sized.writeUInt32LE(sizeBytes, 0)
    sized.set(block, sizePrefixBytes)
    let bytes: Uint8Array
    try {
      bytes = await uncompress(sized)
    } catch (error) {
      throw corrupt('is malformed', block, sizeBytes, error)
    }
    if (bytes.byteLength !== sizeBytes) {
      throw corrupt(`holds ${String(bytes.byteLength)} bytes`, block, sizeBytes)
    }
    return bytes
  },
}

function corrupt(what: string, block: Uint8Array, sizeBytes: number, cause?: unknown) {
  return new ShuffleError(
    'DATA_CORRUPT',
    `LZ4 block of ${String(block.byteLength)} bytes declared as ${String(sizeBytes)} ${what}`,
    { cause, fields: { blockBytes: block.byteLength, declaredBytes: sizeBytes } },
  )
}
