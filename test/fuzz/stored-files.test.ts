import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isShuffleError } from '../../client/common/errors.ts'
import { partitionKeyText, type PartitionKey } from '../../client/common/ids.ts'
import { EntryChecksum, EntryReader } from '../../client/protocol/entry.ts'
import { VirtualWorld } from '../support/virtual-world.ts'
import {
  entriesOf,
  openStore,
  partitionOf,
  readEntries,
  writePartition,
  type TestPartition,
} from '../shuffle-worker/storage/support/store-fixture.ts'
import { fuzzBudget } from './budget.ts'

// Whole files of a data directory, damaged in every way that bytes can be: a worker starts on what is
// left, or says by name what is wrong; nothing that it serves is taken for something else.

type Damage =
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'flip'; readonly at: number; readonly mask: number }
  /** A piece of the file, or of another one, over what was there or between. */
  | {
      readonly kind: 'splice' | 'insert'
      readonly from: number
      readonly other: number
      readonly at: number
      readonly length: number
    }
  | { readonly kind: 'remove'; readonly at: number; readonly length: number }
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }
  | { readonly kind: 'twice' }
  | { readonly kind: 'gone' }

const place = fc.nat(1_000_000)
const length = fc.oneof(fc.nat(40), fc.nat(5_000))
const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('cut' as const), at: place }),
  fc.record({
    kind: fc.constant('flip' as const),
    at: place,
    mask: fc.integer({ min: 1, max: 255 }),
  }),
  fc.record({
    kind: fc.constantFrom('splice' as const, 'insert' as const),
    from: place,
    other: place,
    at: place,
    length,
  }),
  fc.record({ kind: fc.constant('remove' as const), at: place, length }),
  fc.record({ kind: fc.constant('noise' as const), bytes: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ kind: fc.constant('twice' as const) }),
  fc.record({ kind: fc.constant('gone' as const) }),
)

function damaged(bytes: Buffer, how: Damage, others: readonly Buffer[]): Buffer {
  const spot = (at: number) => at % (bytes.length + 1)
  switch (how.kind) {
    case 'cut':
      return bytes.subarray(0, spot(how.at))
    case 'flip': {
      const copy = Buffer.from(bytes)
      if (copy.length > 0) copy[how.at % copy.length]! ^= how.mask
      return copy
    }
    case 'splice':
    case 'insert': {
      const source = others[how.other % others.length] ?? bytes
      const from = how.from % (source.length + 1)
      const piece = source.subarray(from, from + how.length)
      const at = spot(how.at)
      const after = how.kind === 'insert' ? at : at + piece.length
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(after)])
    }
    case 'remove': {
      const at = spot(how.at)
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + how.length)])
    }
    case 'noise':
      return Buffer.from(how.bytes)
    case 'twice':
      return Buffer.concat([bytes, bytes])
    case 'gone':
      return Buffer.alloc(0)
  }
}

/** Some in the shared log, some with a file of their own; one of them released. */
const partitions: readonly TestPartition[] = [
  ...[1, 2, 3].map((index) => partitionOf(index, 40)),
  ...[4, 5, 6].map((index) => partitionOf(index, 1000)),
]
const options = { durability: 'sync', smallPartitionBytesMax: 1024 } as const

/** The files of a worker that has stopped, and the same of one that was killed. */
async function filesOf(isKilled: boolean): Promise<ReadonlyMap<string, Buffer>> {
  const world = new VirtualWorld()
  const process = world.start('main')
  await world.drive(
    (async () => {
      const fixture = await openStore(process, options)
      for (const partition of partitions) await writePartition(fixture, partition)
      await fixture.store.setService({ state: 'excluded', reason: 'repair', number: 1 })
      fixture.store.release([partitions[0]!.key])
      if (!isKilled) await fixture.store.close()
    })(),
  )
  await world.clock.advance(1000)
  process.kill()
  return new Map(
    world
      .disk('main')
      .filesBelow('/data')
      .map((path) => [path, Buffer.from(world.disk('main').contentOf(path) ?? [])]),
  )
}

/** Whether the entries are those of the partition, as a consumer judges: by their checksums. */
function isAccepted(key: PartitionKey, bytes: Buffer): boolean {
  const checksum = new EntryChecksum(key)
  const entries = new EntryReader('DATA_CORRUPT').reset(bytes, 0, bytes.length)
  let run = { regionIndex: 0, subpartition: -1, position: 0 }
  try {
    while (entries.next()) {
      const { subpartition, flags, type } = entries
      // Runs of a region ascend; one that does not begins the next region.
      if (subpartition < run.subpartition) {
        run = { regionIndex: run.regionIndex + 1, subpartition, position: 0 }
      } else if (subpartition > run.subpartition) {
        run = { ...run, subpartition, position: 0 }
      }
      const identity = { ...run, flags, type }
      if (checksum.of(identity, entries.payload()) !== entries.checksum) return false
      run = { ...run, position: run.position + 1 }
    }
    return true
  } catch (error) {
    if (!isShuffleError(error)) throw error
    return false
  }
}

const expected = new Map(
  partitions.map((partition) => [partitionKeyText(partition.key), entriesOf(partition)]),
)

/** Starts a worker on the files; undefined when it refuses by name. */
async function startOn(world: VirtualWorld): Promise<number | undefined> {
  const process = world.start('main')
  try {
    return await world.drive(served(process), 3_600_000)
  } catch (error) {
    if (!isShuffleError(error)) throw error
    expect(error.message).toContain('/data')
    return undefined
  } finally {
    expect(world.disk('main').openFileCount).toBe(0)
    process.kill()
  }
}

async function served(process: ReturnType<VirtualWorld['start']>): Promise<number> {
  const { store, ledger } = await openStore(process, options)
  let readCount = 0
  for (const { key } of store.list()) {
    const found = store.lookup(key)
    if (found.state !== 'committed') continue
    const right = expected.get(partitionKeyText(key))
    expect(right, 'a key that nobody wrote').toBeDefined()
    try {
      const bytes = await readEntries(found.partition)
      if (right?.equals(bytes) !== true) expect(isAccepted(key, bytes)).toBe(false)
      readCount += 1
    } catch (error) {
      if (!isShuffleError(error)) throw error
    }
  }
  // It works: what comes now is kept.
  const next = partitionOf(7, 1000)
  if (store.lookup(next.key).state === 'unknown') {
    await writePartition({ store, ledger }, next)
    const found = store.lookup(next.key)
    if (found.state !== 'committed') throw new Error(`${found.state} after its commit`)
    expect((await readEntries(found.partition)).equals(entriesOf(next))).toBe(true)
    store.release([next.key])
  }
  await store.close()
  ledger.assertBalanced()
  expect(ledger.usedBytes('write') + ledger.usedBytes('index')).toBe(0)
  return readCount
}

test.each([false, true])(
  'of undamaged files, of a killed worker (%s), all is served',
  async (isKilled) => {
    const world = new VirtualWorld()
    for (const [path, content] of await filesOf(isKilled)) world.disk('main').put(path, content)
    expect(await startOn(world)).toBe(partitions.length - 1)
  },
)

test('a worker starts on damaged files, or says which one it refuses', async () => {
  const sets = [await filesOf(false), await filesOf(true)]
  let reads = 0
  let starts = 0
  await fc.assert(
    fc.asyncProperty(
      fc.nat(1),
      fc.array(fc.tuple(fc.nat(100), damage), { minLength: 1, maxLength: 3 }),
      async (set, damages) => {
        const files = new Map(sets[set])
        const others = [...files.values()]
        const paths = [...files.keys()]
        for (const [which, how] of damages) {
          const path = paths[which % paths.length] ?? ''
          files.set(path, damaged(files.get(path) ?? Buffer.alloc(0), how, others))
        }
        const world = new VirtualWorld()
        for (const [path, content] of files) world.disk('main').put(path, content)
        // What the first start made of it stands at the second.
        for (let start = 0; start < 2; start += 1) {
          const readCount = await startOn(world)
          if (readCount === undefined) continue
          starts += 1
          reads += readCount
        }
      },
    ),
    fuzzBudget(),
  )
  expect(starts).toBeGreaterThan(0)
  expect(reads).toBeGreaterThan(0)
})
