// Compute without threads: the work is done at once and answered after a time drawn from the seed,
// so that answers come in another order than they were asked, as from a thread pool.

import { compressSync, uncompressSync } from 'lz4-napi'
import type { Compute } from '../../client/common/compute.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { VirtualClock } from './virtual-clock.ts'
import type { VirtualRandom } from './virtual-random.ts'

export interface VirtualComputeOptions {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  readonly delayMaxMs?: number
}

export class VirtualCompute implements Compute {
  readonly #options: VirtualComputeOptions
  #underWay = 0

  constructor(options: VirtualComputeOptions) {
    this.#options = options
  }

  /** Calls not yet answered. */
  get underWay(): number {
    return this.#underWay
  }

  compress(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#later(() => compressSync(Buffer.from(bytes)).subarray(4))
  }

  uncompress(block: Uint8Array, sizeBytes: number): Promise<Uint8Array> {
    return this.#later(() => uncompressNow(block, sizeBytes))
  }

  /** The work runs at the time of the answer: memory given back too early shows. */
  #later(work: () => Uint8Array): Promise<Uint8Array> {
    const { clock, random, delayMaxMs = 1 } = this.#options
    this.#underWay += 1
    return new Promise((resolve, reject) => {
      clock.schedule(random.between(0, delayMaxMs), () => {
        this.#underWay -= 1
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
    })
  }
}

function uncompressNow(block: Uint8Array, sizeBytes: number): Uint8Array {
  const sized = Buffer.alloc(4 + block.byteLength)
  sized.set(block, 4)
  let bytes: Uint8Array | undefined
  try {
    if (sizeBytes <= block.byteLength * 255) {
      sized.writeUInt32LE(sizeBytes, 0)
      bytes = uncompressSync(sized)
    }
  } catch (error) {
    throw new ShuffleError('DATA_CORRUPT', 'the LZ4 block is malformed', { cause: error })
  }
  if (bytes?.byteLength !== sizeBytes) {
    throw new ShuffleError('DATA_CORRUPT', 'the LZ4 block has another size')
  }
  return bytes
}
