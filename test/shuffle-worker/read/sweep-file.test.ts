import { describe, expect, it } from 'vitest'
import { SweepFile } from '../../../shuffle-worker/read/sweep-file.ts'
import { ReadBench } from './support/read-bench.ts'

describe('sweep file', () => {
  it('opens its partition once and lets it go, also while it is being opened', async () => {
    const bench = new ReadBench()
    const file = new SweepFile(bench.add(0, 1, []))
    expect(await file.open()).toBe(await file.open())
    expect(bench.disk.openReaders).toBe(1)
    const faults: unknown[] = []
    file.close((error) => faults.push(error))
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(bench.disk.openReaders).toBe(0)
    void file.open()
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(bench.disk.openReaders).toBe(0)
    expect(faults).toEqual([])
  })

  it('tells who waits for it that it can not be opened, and nobody else', async () => {
    const bench = new ReadBench()
    bench.disk.released.add(0)
    const file = new SweepFile(bench.add(0, 1, []))
    await expect(file.open()).rejects.toMatchObject({ code: 'PARTITION_RELEASED' })
    const faults: unknown[] = []
    file.close((error) => faults.push(error))
    await bench.clock.settle()
    expect(faults).toEqual([])
  })

  it('has no region to go on with when nobody wants anything', () => {
    const bench = new ReadBench()
    expect(new SweepFile(bench.add(7, 1, [])).nextRegion(0)).toBeUndefined()
    expect(new SweepFile(bench.add(7, 1, [])).order).toBe(7)
  })
})
