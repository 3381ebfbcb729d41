// The bodies of WriteFinish and Described: pages of bytes per subpartition, one u64 each. 32,768
// subpartitions are one page of 256 KiB; more take more pages.

import { ShuffleError } from '../common/errors.ts'
import { bufferView } from './buffer-view.ts'
import { uint64 } from './field-types.ts'

/** One page, from `firstSubpartition` on. */
export interface ByteCountPage {
  readonly firstSubpartition: number
  readonly isLast: boolean
  readonly body: Uint8Array
}

/** In each page but the last, so that nobody holds a worker's memory with pages of one count. */
export const countsPerPage = 65_536

/** Codes the counts of subpartitions 0 to length - 1; at least one page, also for none. */
export function byteCountPages(counts: ArrayLike<number>): ByteCountPage[] {
  const pages: ByteCountPage[] = []
  let first = 0
  do {
    const end = Math.min(counts.length, first + countsPerPage)
    const body = Buffer.alloc((end - first) * 8)
    for (let index = first; index < end; index += 1) {
      uint64.write(counts[index] ?? 0, body, (index - first) * 8)
    }
    pages.push({
      firstSubpartition: first,
      isLast: end === counts.length,
      body: new Uint8Array(body.buffer, body.byteOffset, body.length),
    })
    first = end
  } while (first < counts.length)
  return pages
}

/** Puts pages together again. A page out of order, too long or missing is a PROTOCOL error. */
export class ByteCountAssembler {
  readonly counts: Float64Array
  #filled = 0
  #isComplete = false

  constructor(subpartitionCount: number) {
    this.counts = new Float64Array(subpartitionCount)
  }

  /** Whether the last page has come. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  addPage(page: ByteCountPage): void {
    if (this.#isComplete) fail('a page follows the last', this.#filled)
    const count = page.body.length / 8
    if (page.firstSubpartition !== this.#filled) {
      fail(`it begins at subpartition ${String(page.firstSubpartition)}`, this.#filled)
    }
    if (!Number.isInteger(count) || this.#filled + count > this.counts.length) {
      fail(`its ${String(page.body.length)} bytes do not fit`, this.#filled)
    }
    if (!page.isLast && count !== countsPerPage) {
      fail(`it is not the last and has not ${String(countsPerPage)} counts`, this.#filled)
    }
    const body = bufferView(page.body)
    for (let index = 0; index < count; index += 1) {
      this.counts[this.#filled + index] = readCount(body, index * 8)
    }
    this.#filled += count
    if (!page.isLast) return
    if (this.#filled < this.counts.length)
      fail('it is the last and counts are missing', this.#filled)
    this.#isComplete = true
  }
}

function readCount(body: Buffer, offset: number): number {
  const high = body.readUInt32BE(offset)
  if (high > 0x1f_ffff) fail('a count is larger than 2^53 - 1', offset / 8)
  return high * 0x1_0000_0000 + body.readUInt32BE(offset + 4)
}

function fail(what: string, filled: number): never {
  throw new ShuffleError(
    'PROTOCOL',
    `malformed page of byte counts after ${String(filled)} subpartitions: ${what}`,
    { fields: { filled } },
  )
}
