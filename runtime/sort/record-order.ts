// The order of records: by the bytes of their keys, unsigned, a prefix before what it begins; the
// order of `LC_ALL=C sort`. A record may end in a trailer (a count) that is no part of its key.

/** Negative, zero or positive as the first range sorts before, with or after the second. */
export function compareBytes(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): number {
  const length = Math.min(aEnd - aStart, bEnd - bStart)
  for (let index = 0; index < length; index++) {
    const difference = (a[aStart + index] ?? 0) - (b[bStart + index] ?? 0)
    if (difference !== 0) return difference
  }
  return aEnd - aStart - (bEnd - bStart)
}

/** The first four bytes of a range as a number; what is missing counts as zero. */
export function keyPrefix(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  if (length >= 4) {
    const high = ((bytes[start] ?? 0) << 8) | (bytes[start + 1] ?? 0)
    const low = ((bytes[start + 2] ?? 0) << 8) | (bytes[start + 3] ?? 0)
    return ((high << 16) | low) >>> 0
  }
  let prefix = 0
  for (let index = 0; index < length; index++) {
    prefix |= (bytes[start + index] ?? 0) << (24 - 8 * index)
  }
  return prefix >>> 0
}
