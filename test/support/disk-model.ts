// How long reads and writes take on one modelled device, and where their bytes lie on it. With heads:
// calls are done one after the other in the order of their arrival; blocks are placed in the order in
// which appends arrive, whatever file they are of; a jump costs a seek, or where it is short and
// forward the time of the bytes that pass under the head. Without heads: every call has its own
// latency, and all share the bandwidth. Names, opening and closing cost nothing: the system has them
// in its memory.
//
//   file a   [0 ……… 4 MiB)[4 ……… 8 MiB)           by position in the file
//   device   … | a 0…4 | b 0…4 | a 4…8 | …        in the order of arrival: three extents, two jumps

import type { FileNode } from './virtual-file-tree.ts'

export interface DiskModelSettings {
  /** Of every jump; without heads, of every call. */
  readonly positioningMs: number
  readonly bytesPerSecond: number
  readonly hasHeads: boolean
}

/** What the issue of the scheduler's rate is measured on: one spinning disk. */
export const spinningDisk: DiskModelSettings = {
  positioningMs: 8,
  bytesPerSecond: 150e6,
  hasHeads: true,
}

/** About the disk of docs/performance.md; for counts, not for rates. */
export const solidStateDisk: DiskModelSettings = {
  positioningMs: 0.1,
  bytesPerSecond: 1500e6,
  hasHeads: false,
}

export interface DiskModelCounts {
  readonly reads: number
  readonly readBytes: number
  readonly writes: number
  readonly writtenBytes: number
  readonly jumps: number
  readonly busyMs: number
}

interface Extent {
  readonly filePosition: number
  readonly devicePosition: number
  byteLength: number
}

export class DiskModel {
  readonly #settings: DiskModelSettings
  readonly #extents = new WeakMap<FileNode, Extent[]>()
  #headPosition = 0
  #allocatedBytes = 0
  #freeAtMs = 0
  readonly #counts = { reads: 0, readBytes: 0, writes: 0, writtenBytes: 0, jumps: 0, busyMs: 0 }

  constructor(settings: DiskModelSettings) {
    this.#settings = settings
  }

  /** So far; two of them make a difference. */
  get counts(): DiskModelCounts {
    return { ...this.#counts }
  }

  /** A call that arrives at `nowMs`: in how many milliseconds it is done. */
  write(node: FileNode, place: { position: number; byteCount: number }, nowMs: number): number {
    this.#counts.writes += 1
    this.#counts.writtenBytes += place.byteCount
    this.#place(node, place.position, place.byteCount)
    return this.#perform(node, place, nowMs)
  }

  read(node: FileNode, place: { position: number; byteCount: number }, nowMs: number): number {
    this.#counts.reads += 1
    this.#counts.readBytes += place.byteCount
    return this.#perform(node, place, nowMs)
  }

  /** Extents that the file lies in. */
  extentCountOf(node: FileNode): number {
    return this.#extents.get(node)?.length ?? 0
  }

  #perform(
    node: FileNode,
    { position, byteCount }: { position: number; byteCount: number },
    nowMs: number,
  ): number {
    const { positioningMs, hasHeads } = this.#settings
    const startMs = Math.max(nowMs, this.#freeAtMs)
    const transferMs = this.#msOf(byteCount)
    const costMs = hasHeads ? transferMs + this.#moveOver(node, position, byteCount) : transferMs
    this.#freeAtMs = startMs + costMs
    this.#counts.busyMs += costMs
    return this.#freeAtMs - nowMs + (hasHeads ? 0 : positioningMs)
  }

  /** Moves the head over all extents of the range; returns the time of the jumps. */
  #moveOver(node: FileNode, position: number, byteCount: number): number {
    let jumpMs = 0
    for (const extent of this.#extents.get(node) ?? []) {
      const from = Math.max(position, extent.filePosition)
      const to = Math.min(position + byteCount, extent.filePosition + extent.byteLength)
      if (from >= to) continue
      const start = extent.devicePosition + from - extent.filePosition
      jumpMs += this.#jumpTo(start)
      this.#headPosition = start + to - from
    }
    return jumpMs
  }

  #jumpTo(devicePosition: number): number {
    const gap = devicePosition - this.#headPosition
    if (gap === 0) return 0
    const { positioningMs } = this.#settings
    const passMs = gap > 0 ? this.#msOf(gap) : Infinity
    if (passMs <= positioningMs) return passMs
    this.#counts.jumps += 1
    return positioningMs
  }

  /** Gives a place to what has none yet: what is overwritten stays where it lies. */
  #place(node: FileNode, position: number, byteCount: number): void {
    let extents = this.#extents.get(node)
    if (extents === undefined) {
      extents = []
      this.#extents.set(node, extents)
    }
    const last = extents.at(-1)
    const placedTo = last === undefined ? 0 : last.filePosition + last.byteLength
    const added = position + byteCount - placedTo
    if (added <= 0) return
    const isAdjacent =
      last !== undefined && last.devicePosition + last.byteLength === this.#allocatedBytes
    if (isAdjacent) last.byteLength += added
    else {
      extents.push({
        filePosition: placedTo,
        devicePosition: this.#allocatedBytes,
        byteLength: added,
      })
    }
    this.#allocatedBytes += added
  }

  #msOf(byteCount: number): number {
    return (byteCount / this.#settings.bytesPerSecond) * 1000
  }
}
