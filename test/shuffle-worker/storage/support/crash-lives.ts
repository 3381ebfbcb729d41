import { expect } from 'vitest'
import type { PartitionKeyText } from '../../../../client/common/ids.ts'
import { partitionKeyText } from '../../../../client/common/ids.ts'
import type { Durability } from '../../../../shuffle-worker/storage/storage-types.ts'
import type { DataStore } from '../../../../shuffle-worker/storage/data-store.ts'
import {
  servingFromTheStart,
  type ServiceRecord,
  type ServiceState,
} from '../../../../client/manager/schemas.ts'
import { VirtualWorld, type VirtualProcess } from '../../../support/virtual-world.ts'
import {
  entriesOf,
  openStore,
  partitionOf,
  readEntries,
  writePartition,
  type StoreFixture,
  type TestPartition,
} from './store-fixture.ts'

// The end of a worker's life (killed, or with its machine's power lost) before and after every file call
// that it makes: its first start, creates, writes, commits, releases said twice, orders to drain and to
// serve again, and a clean stop; and once more at every call of the life after that.

const smallPartitionBytesMax = 1024

export interface Variant {
  readonly durability: Durability
  readonly payloadBytes: number
  /** Direct unless given. */
  readonly isDirect?: boolean
}

/** What the outside has been told. */
interface Told {
  readonly started: Set<PartitionKeyText>
  readonly committed: Set<PartitionKeyText>
  readonly askedToRelease: Set<PartitionKeyText>
  readonly gone: Set<PartitionKeyText>
  /** Wanted of the worker, in this order, and the number of the last that was answered. */
  readonly wanted: ServiceRecord[]
  answeredNumber: number
  isStopping: boolean
  isStopped: boolean
  /** An earlier life may have synced what it had, and lost power all the same. */
  wasStopping: boolean
}

function nothingTold(): Told {
  return {
    started: new Set(),
    committed: new Set(),
    askedToRelease: new Set(),
    gone: new Set(),
    wanted: [servingFromTheStart],
    answeredNumber: 0,
    isStopping: false,
    isStopped: false,
    wasStopping: false,
  }
}

/** What still holds when the power went: without sync nothing that was told need be there. */
function losePower(told: Told, { durability }: Variant): void {
  if (durability === 'none' && !told.isStopped) told.committed.clear()
  told.wasStopping ||= told.isStopping
  told.isStopping = false
  told.isStopped = false
}

const allPartitions = new Map<PartitionKeyText, TestPartition>()

function partitionOfVariant(index: number, { payloadBytes }: Variant): TestPartition {
  const partition = partitionOf(index, payloadBytes, { attempt: `size-${String(payloadBytes)}` })
  allPartitions.set(partitionKeyText(partition.key), partition)
  return partition
}

async function live(
  process: VirtualProcess,
  variant: Variant,
  told: Told,
  indexes: readonly [number, number, number],
): Promise<void> {
  const fixture = await openStore(
    process,
    { durability: variant.durability, smallPartitionBytesMax },
    [{ path: '/data', kind: 'ssd', isDirect: variant.isDirect ?? true }],
  )
  const { store } = fixture
  const [first, second, third] = indexes.map((index) => partitionOfVariant(index, variant))
  if (first === undefined || second === undefined || third === undefined) throw new Error()
  await write(fixture, first, told)
  await write(fixture, second, told)
  await order(store, told, 'draining')
  await release(store, first, told)
  await order(store, told, 'serving')
  await write(fixture, third, told)
  await release(store, third, told)
  told.isStopping = true
  await store.close()
  told.isStopped = true
}

/** Said twice over: the second time it is done already, or under way. */
async function release(store: DataStore, partition: TestPartition, told: Told): Promise<void> {
  const text = partitionKeyText(partition.key)
  const gone = new Promise<void>((resolve) => {
    store.onChange((change) => {
      if (change.kind !== 'released') return
      for (const key of change.keys) told.gone.add(partitionKeyText(key))
      if (told.gone.has(text)) resolve()
    })
  })
  told.askedToRelease.add(text)
  store.release([partition.key])
  store.release([partition.key])
  await gone
  store.release([partition.key])
}

async function order(store: DataStore, told: Told, state: ServiceState): Promise<void> {
  const record = {
    state,
    reason: `order ${String(told.wanted.length)}`,
    number: told.wanted.length,
  }
  told.wanted.push(record)
  const kept = await store.setService(record)
  expect(kept).toEqual(record)
  told.answeredNumber = record.number
}

async function write(fixture: StoreFixture, partition: TestPartition, told: Told): Promise<void> {
  const text = partitionKeyText(partition.key)
  told.started.add(text)
  await writePartition(fixture, partition)
  told.committed.add(text)
}

async function contentsOf({ store }: StoreFixture): Promise<Map<PartitionKeyText, Buffer>> {
  const contents = new Map<PartitionKeyText, Buffer>()
  for (const { key } of store.list()) {
    const found = store.lookup(key)
    if (found.state !== 'committed') throw new Error(`${found.state} after a start`)
    contents.set(partitionKeyText(key), await readEntries(found.partition))
  }
  return contents
}

export type End = 'killed' | 'power lost, unsynced dropped' | 'power lost, unsynced torn'

const losses = {
  killed: undefined,
  'power lost, unsynced dropped': 'drop',
  'power lost, unsynced torn': 'random',
} as const

/** Starts a worker's life and ends it at call `operation`; false when it ended by itself before. */
async function dieAt(
  virtual: VirtualWorld,
  operation: number,
  when: 'before' | 'after',
  run: (process: VirtualProcess) => Promise<void>,
): Promise<boolean> {
  const process = virtual.start('main')
  const state = { isDead: false, isDone: false }
  virtual.disk().stopAt(virtual.disk().operationCount + operation, when, () => {
    state.isDead = true
    process.kill()
  })
  const running = run(process).then(() => {
    state.isDone = true
  })
  await virtual.clock.runUntil(() => state.isDead || state.isDone)
  if (state.isDone) await running
  virtual.disk().stopAt(-1, when, () => undefined)
  process.kill()
  // What was under way in the kernel may still happen.
  await virtual.clock.settle()
  return state.isDead
}

async function check(virtual: VirtualWorld, variant: Variant, told: Told, end: End): Promise<void> {
  const fixture = await virtual.drive(
    openStore(virtual.start('main'), { durability: variant.durability, smallPartitionBytesMax }),
  )
  const contents = await virtual.drive(contentsOf(fixture))
  // An order that was answered holds; one that was under way holds as a whole or not at all.
  const { service } = fixture.store
  expect(service.number).toBeGreaterThanOrEqual(told.answeredNumber)
  expect(told.wanted).toContainEqual(service)
  const isKept = end === 'killed' || variant.durability === 'sync' || told.isStopped
  const mustBe = [...told.committed].filter((text) => !told.askedToRelease.has(text))
  if (isKept) for (const text of mustBe) expect([...contents.keys()]).toContain(text)
  if (!isKept && !told.isStopping && !told.wasStopping) expect([...contents.keys()]).toEqual([])
  for (const [text, bytes] of contents) {
    expect(told.started).toContain(text)
    if (end === 'killed') expect(told.gone).not.toContain(text)
    const partition = allPartitions.get(text)
    expect(partition && bytes.equals(entriesOf(partition))).toBe(true)
  }
  expectNothingElse(virtual, contents.size, variant)
  await virtual.drive(fixture.store.close())
  fixture.ledger.assertBalanced()
  expect(fixture.ledger.usedBytes('write') + fixture.ledger.usedBytes('index')).toBe(0)
  expect(virtual.disk().openFileCount).toBe(0)
}

function expectNothingElse(virtual: VirtualWorld, partitionCount: number, variant: Variant): void {
  const files = virtual.disk().filesBelow('/data')
  const left = files.filter((path) => /\.partial$|\.new$/.test(path))
  expect(left).toEqual([])
  const data = files.filter((path) => path.endsWith('.data'))
  const isSmall = variant.payloadBytes < 256
  expect(data).toHaveLength(isSmall ? 0 : partitionCount)
  if (partitionCount === 0) expect(files.filter((path) => path.endsWith('.segment'))).toEqual([])
}

export const ends = Object.keys(losses) as readonly End[]

export const variants: readonly (readonly [string, Variant])[] = [
  ['a file each, not synced', { durability: 'none', payloadBytes: 1000 }],
  ['a file each, buffered', { durability: 'none', payloadBytes: 999, isDirect: false }],
  ['a file each, synced', { durability: 'sync', payloadBytes: 1000 }],
  ['the shared log, not synced', { durability: 'none', payloadBytes: 40 }],
  ['the shared log, synced', { durability: 'sync', payloadBytes: 40 }],
]

/** A worker's life is ended at each of its file calls in turn; then the next start is looked at. */
export async function endAtEachCall(
  variant: Variant,
  end: End,
  when: 'before' | 'after',
): Promise<void> {
  for (let operation = 1; ; operation += 1) {
    const virtual = new VirtualWorld({ seed: operation })
    const told = nothingTold()
    const isDead = await dieAt(virtual, operation, when, (process) =>
      live(process, variant, told, [1, 2, 3]),
    )
    const loss = losses[end]
    if (loss !== undefined) virtual.disk().crash(loss)
    await check(virtual, variant, told, end)
    if (!isDead) return
  }
}

/**
 * The same for a start on a disk that others have filled: wherever it ends, the next start on it has all,
 * and so has the one after, when there is room again.
 */
export async function endStartOnFullDiskAtEachCall(variant: Variant): Promise<void> {
  const options = { durability: variant.durability, smallPartitionBytesMax }
  for (let operation = 1; ; operation += 1) {
    const virtual = new VirtualWorld({ seed: operation })
    const kept = [1, 2, 3].map((index) => partitionOfVariant(index, variant))
    const first = await virtual.drive(openStore(virtual.main, options))
    for (const each of kept) await virtual.drive(writePartition(first, each))
    virtual.main.kill()
    virtual.disk().setCapacity('/data', 1)
    const isDead = await dieAt(virtual, operation, 'before', async (process) => {
      const { store } = await openStore(process, options)
      await store.close()
    })
    if (variant.durability === 'sync') virtual.disk().crash('drop')
    for (const capacity of [1, 1_000_000]) {
      virtual.disk().setCapacity('/data', capacity)
      const process = virtual.start('main')
      const fixture = await virtual.drive(openStore(process, options))
      const contents = await virtual.drive(contentsOf(fixture))
      expect(contents.size).toBe(kept.length)
      for (const each of kept) {
        const found = contents.get(partitionKeyText(each.key))
        expect(found?.equals(entriesOf(each))).toBe(true)
      }
      expect(fixture.store.workerEpoch).toBeGreaterThan(first.store.workerEpoch)
      process.kill()
      await virtual.clock.settle()
    }
    if (!isDead) return
  }
}

/** The same twice in a row: the life after the first end is itself ended at each of its calls. */
export async function endTwice(
  variant: Variant,
  end: End,
  calls: { readonly first: number; readonly stride: number },
): Promise<void> {
  const whole = new VirtualWorld()
  await whole.drive(live(whole.main, variant, nothingTold(), [1, 2, 3]))
  const callCount = whole.disk().operationCount
  for (let operation = calls.first; operation <= callCount; operation += calls.stride) {
    for (let again = 1; ; again += 1) {
      const virtual = new VirtualWorld({ seed: operation })
      const told = nothingTold()
      await dieAt(virtual, operation, 'before', (process) =>
        live(process, variant, told, [1, 2, 3]),
      )
      const loss = losses[end]
      if (loss !== undefined) {
        virtual.disk().crash(loss)
        losePower(told, variant)
      }
      const isDead = await dieAt(virtual, again, 'before', (process) =>
        live(process, variant, told, [4, 5, 6]),
      )
      if (loss !== undefined) virtual.disk().crash(loss)
      await check(virtual, variant, told, end)
      if (!isDead) break
    }
  }
}

/** Which calls of a whole life meet which files: that the points of {@link endAtEachCall} are the right ones. */
export async function callsOfALife(variant: Variant): Promise<ReadonlySet<string>> {
  const virtual = new VirtualWorld()
  const files = ['.partial', '.data', '.segment', 'journal', 'service', 'identity']
  const kinds = ['open', 'write', 'sync', 'rename', 'unlink', 'close', 'syncDirectory'] as const
  const rules = kinds.flatMap((operation) =>
    [...files, '/data$', 'partitions$', 'log$'].map((file) => ({
      name: `${operation} ${file.replace('$', '')}`,
      rule: virtual.disk().inject({
        fault: { kind: 'slow', delayMs: 0 },
        operation,
        path: new RegExp(file.replace('.', '\\.')),
      }),
    })),
  )
  await virtual.drive(live(virtual.main, variant, nothingTold(), [1, 2, 3]))
  return new Set(rules.filter(({ rule }) => rule.hits > 0).map(({ name }) => name))
}
