// Seam: randomness. One real source; the virtual one draws from a seed.

import { randomBytes } from 'node:crypto'

export interface Random {
  /** Uniform in [0, 1). */
  float(): number
  /** `length` random bytes; from the real source fit for secrets. */
  bytes(length: number): Buffer
}

export const realRandom: Random = {
  float: () => Math.random(),
  bytes: (length) => randomBytes(length),
}

/** Uniform integer in [0, below). */
export function randomInteger(random: Random, below: number): number {
  return Math.floor(random.float() * below)
}

/** `byteCount` random bytes as lower-case hexadecimal. */
export function randomHex(random: Random, byteCount: number): string {
  return random.bytes(byteCount).toString('hex')
}
