import { describe, expect, it } from 'vitest'
import { DiskModel, solidStateDisk, spinningDisk } from './disk-model.ts'
import { FileNode } from './virtual-file-tree.ts'

const megabyte = 1e6
const msOf = (bytes: number) => (bytes / 150e6) * 1000

describe('a modelled disk', () => {
  it('places appends in the order in which they arrive, so that two files written in turns lie in pieces', () => {
    const model = new DiskModel(spinningDisk)
    const [a, b] = [new FileNode(), new FileNode()]
    for (let round = 0; round < 3; round++) {
      const position = round * megabyte
      expect(model.write(a, { position, byteCount: megabyte }, 1e6)).toBeGreaterThan(0)
      model.write(b, { position, byteCount: megabyte }, 1e6)
    }
    expect(model.extentCountOf(a)).toBe(3)
    // All writes went where the head was.
    expect(model.counts.jumps).toBe(0)
    const before = model.counts.busyMs
    model.read(a, { position: 0, byteCount: 3 * megabyte }, 2e6)
    // Back to the beginning is a jump; over a megabyte of the other file the head just passes.
    expect(model.counts.jumps).toBe(1)
    expect(model.counts.busyMs - before).toBeCloseTo(8 + msOf(5 * megabyte))
  })

  it('costs a seek for a jump back or far, and the bytes between for one that is short and forward', () => {
    const model = new DiskModel(spinningDisk)
    const file = new FileNode()
    model.write(file, { position: 0, byteCount: 100 * megabyte }, 0)
    const cost = (position: number) => {
      const before = model.counts.busyMs
      model.read(file, { position, byteCount: 15_000 }, 1e6)
      return model.counts.busyMs - before
    }
    expect(cost(0)).toBeCloseTo(8.1)
    expect(cost(15_000)).toBeCloseTo(0.1)
    expect(cost(30_000 + 600_000)).toBeCloseTo(4.1)
    expect(cost(10 * megabyte)).toBeCloseTo(8.1)
    expect(cost(10 * megabyte)).toBeCloseTo(8.1)
  })

  it('does one call after the other', () => {
    const model = new DiskModel(spinningDisk)
    const file = new FileNode()
    expect(model.write(file, { position: 0, byteCount: 1_500_000 }, 0)).toBeCloseTo(10)
    expect(model.write(file, { position: 1_500_000, byteCount: 1_500_000 }, 5)).toBeCloseTo(15)
    expect(model.counts).toMatchObject({ writes: 2, writtenBytes: 3 * megabyte, reads: 0 })
  })

  it('leaves what is written over where it lies', () => {
    const model = new DiskModel(spinningDisk)
    const [a, b] = [new FileNode(), new FileNode()]
    model.write(a, { position: 0, byteCount: 1000 }, 0)
    model.write(b, { position: 0, byteCount: 1000 }, 0)
    model.write(a, { position: 0, byteCount: 1000 }, 0)
    expect(model.extentCountOf(a)).toBe(1)
    expect(model.counts.jumps).toBe(1)
  })

  it('without heads shares the bandwidth and adds a latency to each call', () => {
    const model = new DiskModel(solidStateDisk)
    const file = new FileNode()
    expect(model.write(file, { position: 0, byteCount: 15 * megabyte }, 0)).toBeCloseTo(10.1)
    expect(model.read(file, { position: 0, byteCount: 15 * megabyte }, 0)).toBeCloseTo(20.1)
    expect(model.counts.jumps).toBe(0)
  })
})
