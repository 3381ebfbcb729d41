// The units of a block, as ranges of its bytes.

import type { Block } from './block-reader.ts'

/** Where a unit ends: the index of its separator, or the end of the block. */
export function unitEnd(block: Block, separators: Uint8Array, start: number): number {
  let at = start
  while (at < block.end && separators[block.bytes[at] ?? 0] === 0) at += 1
  return at
}
