// A bounded source of buffers that knows how many are out.

import type { PooledBuffer } from '../../../../client/common/buffer.ts'
import { parseJobId } from '../../../../client/common/ids.ts'
import type { BufferSource } from '../../../../shuffle-worker/write/credit-granter.ts'

export const jobId = parseJobId('job')

export class CountingSource implements BufferSource {
  used = 0
  limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  tryAcquire(request: { readonly count: number }): PooledBuffer[] | undefined {
    if (this.used + request.count > this.limit) return undefined
    this.used += request.count
    return Array.from({ length: request.count }, () => {
      let isOut = true
      return {
        bytes: new Uint8Array(1024),
        recycle: () => {
          if (!isOut) throw new Error('recycled twice')
          isOut = false
          this.used -= 1
        },
      }
    })
  }
}
