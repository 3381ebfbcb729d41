// A count at the end of a record: eight bytes, a whole number up to 2^53 - 1.

/** Length of a count. */
export const countBytes = 8

const scratch = new DataView(new ArrayBuffer(countBytes))

export function readCount(bytes: Uint8Array, position: number): number {
  for (let index = 0; index < countBytes; index++) {
    scratch.setUint8(index, bytes[position + index] ?? 0)
  }
  return scratch.getFloat64(0)
}

export function writeCount(bytes: Uint8Array, position: number, count: number): void {
  scratch.setFloat64(0, count)
  for (let index = 0; index < countBytes; index++) bytes[position + index] = scratch.getUint8(index)
}

/** Adds the count in `other` to the one in `target`. */
export function addCounts(target: Uint8Array, other: Uint8Array): void {
  writeCount(target, 0, readCount(target, 0) + readCount(other, 0))
}
