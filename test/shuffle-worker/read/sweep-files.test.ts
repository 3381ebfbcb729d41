import { describe, expect, it } from 'vitest'
import { fromBeginning } from '../../../client/protocol/partition-list.ts'
import { DiskList, type SweepChannel } from '../../../shuffle-worker/read/disk-list.ts'
import { ListMemory } from '../../../shuffle-worker/read/list-memory.ts'
import { PartitionCursor } from '../../../shuffle-worker/read/partition-cursor.ts'
import { SweepFiles } from '../../../shuffle-worker/read/sweep-files.ts'
import { ReadBench } from './support/read-bench.ts'

function make(openFilesMax: number) {
  const bench = new ReadBench()
  const listed = new Map<number, number>()
  const faults: unknown[] = []
  const files = new SweepFiles({
    openFilesMax,
    listedCountOf: ({ fileOrder }) => listed.get(fileOrder) ?? 0,
    onFault: (error) => faults.push(error),
  })
  const partitions = Array.from({ length: 8 }, (_, order) => bench.add(order, 1, []))
  const want = (order: number) => {
    const partition = partitions[order]
    if (partition === undefined) throw new Error('no such partition')
    const range = { firstSubpartition: 0, lastSubpartition: 0 }
    const cursor = new PartitionCursor({ index: 0, partition, ...range, start: fromBeginning })
    const file = files.of(partition)
    file.wants.set(cursor, new DiskList({} as SweepChannel, new ListMemory(bench.ledger)))
    return { partition, cursor, file }
  }
  return { bench, listed, files, partitions, want, faults }
}

describe('sweep files', () => {
  it('keeps a file as long as someone has begun it or has it in a list', async () => {
    const { bench, files, listed, want } = make(10)
    listed.set(3, 1)
    const { partition, cursor, file } = want(3)
    await files.open(file)
    expect(files.get(partition)).toBe(file)
    file.wants.delete(cursor)
    files.dropIfUnwanted(file)
    expect(files.openCount).toBe(1)
    files.changeListed(partition, 1)
    files.changeListed(partition, -1)
    expect(files.openCount).toBe(1)
    files.changeListed(partition, -1)
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders]).toEqual([0, 0])
    expect(files.get(partition)).toBeUndefined()
    // Not known: nothing to count.
    files.changeListed(partition, -1)
  })

  it('closes those visited longest ago, and opens them again when their turn comes', async () => {
    const { bench, files, want } = make(3)
    const wanted = [0, 1, 2, 3, 4].map(want)
    for (const { file } of wanted) await files.open(file)
    await files.open(wanted[0]?.file ?? want(0).file)
    files.trim()
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders]).toEqual([3, 3])
    const [first, second] = wanted
    if (first === undefined || second === undefined) throw new Error('they are wanted')
    expect(files.get(second.partition)).toBe(second.file)
    await files.open(second.file)
    expect(bench.disk.openReaders).toBe(4)
    files.close()
    await bench.clock.settle()
    expect([files.openCount, bench.disk.openReaders]).toEqual([0, 0])
  })

  it('forgets what it closes when nobody has begun it', async () => {
    const { bench, files, partitions, listed } = make(2)
    for (const { fileOrder } of partitions) listed.set(fileOrder, 1)
    for (const partition of partitions) await files.open(files.of(partition))
    files.trim()
    await bench.clock.settle()
    expect(bench.disk.openReaders).toBe(2)
    expect(partitions.map((partition) => files.get(partition) !== undefined)).toEqual([
      ...Array.from({ length: 6 }, () => false),
      true,
      true,
    ])
  })
})
