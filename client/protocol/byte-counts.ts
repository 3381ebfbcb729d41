// The bodies of WriteFinish and Described: pages of bytes per subpartition, one u64 each. 32,768
// subpartitions are 256 KiB; more take more pages.

/** One page, from `firstSubpartition` on. */
export interface ByteCountPage {
  readonly firstSubpartition: number
  readonly isLast: boolean
  readonly body: Uint8Array
}

/** Codes the counts of subpartitions 0 to length - 1; at least one page, also for none. */
export function byteCountPages(counts: ArrayLike<number>): ByteCountPage[] {
  void counts
  throw new Error('to be written')
}

/** Puts pages together again. A page out of order or too long is a PROTOCOL error. */
export class ByteCountAssembler {
  readonly counts: Float64Array

  constructor(subpartitionCount: number) {
    this.counts = new Float64Array(subpartitionCount)
  }

  addPage(page: ByteCountPage): void {
    void page
    throw new Error('to be written')
  }

  /** Whether the last page has come. */
  get isComplete(): boolean {
    throw new Error('to be written')
  }
}
