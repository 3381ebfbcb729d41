// placeholder, filled below
import type { PooledBuffer } from '../../client/common/buffer.ts'
import type { Clock } from '../../client/common/clock.ts'
import type { JobId } from '../../client/common/ids.ts'

export type MemoryPurpose = 'write' | 'read' | 'index' | 'control'

export interface MemoryLedgerSettings {
  readonly clock: Clock
  /** The whole budget; default 64 MiB. */
  readonly totalBytes?: number
  /** Default 32 KiB; a power of two from 4 KiB to 1 MiB. */
  readonly bufferSizeBytes?: number
  /** What no other purpose can take; by default 24 : 24 : 8 : 8 of the total. */
  readonly floors?: Readonly<Record<MemoryPurpose, number>>
}

export interface AcquireRequest {
  readonly purpose: 'write' | 'read'
  readonly count: number
  readonly jobId?: JobId
}

export interface WaitOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/** Bytes that are counted but are no buffers of the pool. */
export interface Reservation {
  readonly bytes: number
  /** Exactly once. */
  release(): void
}

export class MemoryLedger {
  readonly bufferSizeBytes: number = 0
  readonly totalBytes: number = 0

  constructor(_settings: MemoryLedgerSettings) {
    throw new Error('being written')
  }

  /** All `count` at once, in arrival order within the purpose. BUSY at the deadline, the signal's reason when aborted. */
  acquire(_request: AcquireRequest & WaitOptions): Promise<PooledBuffer[]> {
    throw new Error('being written')
  }

  /** Undefined when they are not free now, or others wait. */
  tryAcquire(_request: AcquireRequest): PooledBuffer[] | undefined {
    throw new Error('being written')
  }

  /**
   * One contiguous block, a multiple of the buffer size, at most 1 MiB: as large as is free now
   * between the two bounds. Undefined when there is none.
   */
  tryAcquireBlock(_request: {
    readonly purpose: 'write' | 'read'
    readonly sizeBytesMin: number
    readonly sizeBytesMax: number
    readonly jobId?: JobId
  }): PooledBuffer | undefined {
    throw new Error('being written')
  }

  tryReserve(_request: {
    readonly purpose: MemoryPurpose
    readonly bytes: number
    readonly jobId?: JobId
  }): Reservation | undefined {
    throw new Error('being written')
  }

  reserve(
    _request: {
      readonly purpose: MemoryPurpose
      readonly bytes: number
      readonly jobId?: JobId
    } & WaitOptions,
  ): Promise<Reservation> {
    throw new Error('being written')
  }

  /** What the purpose may use in all: its floor and whatever belongs to none. */
  partBytes(_purpose: MemoryPurpose): number {
    throw new Error('being written')
  }

  usedBytes(_purpose: MemoryPurpose): number {
    throw new Error('being written')
  }

  /** Buffers that the purpose could get at this moment. */
  freeCount(_purpose: 'write' | 'read'): number {
    throw new Error('being written')
  }

  usedBytesByJob(): ReadonlyMap<JobId, number> {
    throw new Error('being written')
  }

  waiterCount(_purpose: MemoryPurpose): number {
    throw new Error('being written')
  }

  /** Calls back after something of the purpose was given back and no waiter took it. */
  onFree(_purpose: MemoryPurpose, _callback: () => void): void {
    throw new Error('being written')
  }

  close(): void {
    throw new Error('being written')
  }
}
