// The real Compute: LZ4 on Node's thread pool through lz4-napi. Its block format is the
// uncompressed size as u32, little-endian, and then the raw block; ours is the raw block alone.

import type * as Lz4 from 'lz4-napi'
import type { Compute } from './compute.ts'
import { ShuffleError } from './errors.ts'

const sizePrefixBytes = 4
/** An LZ4 block can't grow by more than this factor; a larger claim is refused before allocation. */
const expansionMax = 255
/**
 * Up to here the block is done on the spot: handing it to another thread and back costs 13 to 18 µs
 * of processor time, the work itself at most 5.
 */
const inlineBytesMax = 4096

/** Loaded with the first block: a worker passes blocks through and never needs its memory. */
let loaded: typeof Lz4 | undefined

async function load(): Promise<typeof Lz4> {
  loaded = await import('lz4-napi')
  return loaded
}

export const realCompute: Compute = {
  async compress(bytes) {
    const lz4 = loaded ?? (await load())
    const sized =
      bytes.byteLength <= inlineBytesMax
        ? lz4.compressSync(toBuffer(bytes))
        : await lz4.compress(bytes)
    return sized.subarray(sizePrefixBytes)
  },

  async uncompress(block, sizeBytes) {
    if (sizeBytes < 0 || sizeBytes > block.byteLength * expansionMax) {
      throw corrupt('claims an impossible size', block, sizeBytes)
    }
    const sized = Buffer.allocUnsafe(sizePrefixBytes + block.byteLength)
    sized.writeUInt32LE(sizeBytes, 0)
    sized.set(block, sizePrefixBytes)
    const lz4 = loaded ?? (await load())
    let bytes: Uint8Array
    try {
      bytes = sizeBytes <= inlineBytesMax ? lz4.uncompressSync(sized) : await lz4.uncompress(sized)
    } catch (error) {
      throw corrupt('is malformed', block, sizeBytes, error)
    }
    if (bytes.byteLength !== sizeBytes) {
      throw corrupt(`holds ${String(bytes.byteLength)} bytes`, block, sizeBytes)
    }
    return bytes
  },
}

/** The same memory, as the library's synchronous call wants it. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function corrupt(what: string, block: Uint8Array, sizeBytes: number, cause?: unknown) {
  return new ShuffleError(
    'DATA_CORRUPT',
    `LZ4 block of ${String(block.byteLength)} bytes declared as ${String(sizeBytes)} ${what}`,
    { cause, fields: { blockBytes: block.byteLength, declaredBytes: sizeBytes } },
  )
}
