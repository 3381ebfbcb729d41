// One of three disks answers nothing any more while twelve tasks write and read as fast as they can.

import { describe, expect, it } from 'vitest'
import { isShuffleError } from '../../client/common/errors.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { ClientBench, descriptorOf, readAll, wholeInput } from '../client/support/client-bench.ts'
import { clusterId } from '../client/support/fake-worker.ts'
import { openStore } from './storage/support/store-fixture.ts'
import { dataPort, WorkerBench } from './support/worker-bench.ts'

const taskCount = 12
/** What the disk had given before it fell silent may still be on its way. */
const onTheWayMs = 200
const recordCount = 16
const disks = ['/one', '/hung', '/three'] as const
const diskTimeoutMs = 2_000
/** So that twelve tasks keep three disks busy without a million calls. */
const slowMs = { ssd: 90, hdd: 20 } as const

/** One partition, written and read, or the error that ended it. */
interface Ended {
  readonly startedMs: number
  readonly endedMs: number
  readonly path: string | undefined
  readonly code: string | undefined
}

class Load {
  readonly worker: WorkerBench
  readonly client: ClientBench
  readonly #slowFault: { readonly kind: 'slow'; readonly delayMs: number }
  readonly #slow: ReadonlyMap<string, { remove(): void }>
  readonly ended: Ended[] = []
  isOver = false
  #next = 0

  constructor(worker: WorkerBench, kind: keyof typeof slowMs) {
    this.worker = worker
    this.#slowFault = { kind: 'slow', delayMs: slowMs[kind] }
    this.client = new ClientBench({ world: worker.world })
    this.#slow = new Map(
      disks.map((path) => [path, this.#disk.inject({ fault: this.#slowFault, path })]),
    )
  }

  static async start(kind: 'ssd' | 'hdd'): Promise<Load> {
    const worker = await WorkerBench.start(
      {
        clusterId,
        diskTimeoutMs,
        diskProbeIntervalMs: 1_000,
        diskFailedAfterMs: 120_000,
        regionTimeoutMs: 30_000,
        preferredDiskKind: kind,
      },
      { paths: disks, kind },
    )
    return new Load(worker, kind)
  }

  get #disk() {
    return this.worker.world.disk('worker')
  }

  /** From now on no call to the disk is answered; answers how to end that. */
  hang(): () => void {
    this.#slow.get('/hung')?.remove()
    const fault = this.#disk.inject({ fault: { kind: 'hang' }, path: '/hung' })
    return () => {
      fault.remove()
      this.#disk.inject({ fault: this.#slowFault, path: '/hung' })
      this.#disk.releaseHung()
    }
  }

  async startStoreAgain(): Promise<void> {
    const { store } = await openStore(
      this.worker.world.start('worker'),
      {},
      disks.map((path) => ({ path, kind: 'ssd' })),
    )
    // A commit that nobody was told of may be there: its manager has it released, as here.
    const keys = store.list().map(({ key }) => key)
    const gone = new Promise<void>((resolve) => {
      let left = keys.length
      store.onChange((change) => {
        if (change.kind === 'released') left -= change.keys.length
        if (left === 0) resolve()
      })
      if (left === 0) resolve()
    })
    store.release(keys)
    await gone
    await store.close()
  }

  get nowMs(): number {
    return this.worker.world.clock.nowMs()
  }

  run(): Promise<unknown> {
    return Promise.all(Array.from({ length: taskCount }, () => this.#task()))
  }

  endedBetween(fromMs: number, toMs: number): readonly Ended[] {
    return this.ended.filter(({ endedMs }) => endedMs > fromMs && endedMs <= toMs)
  }

  async #task(): Promise<void> {
    while (!this.isOver) {
      this.#next += 1
      const place = { workerId: this.worker.worker.workerId, host: 'worker', port: dataPort }
      const descriptor = descriptorOf(place, { partitionIndex: this.#next })
      const startedMs = this.nowMs
      const code = await this.#writeAndRead(descriptor)
      const { store } = this.worker.worker
      const found = store.lookup(descriptor.key)
      const path = found.state === 'committed' ? found.partition.directory.path : undefined
      this.ended.push({ startedMs, endedMs: this.nowMs, path, code })
      store.release([descriptor.key])
      store.confirmReleased([descriptor.key])
    }
  }

  async #writeAndRead(descriptor: ShuffleDescriptor): Promise<string | undefined> {
    const partition = this.client.createPartition(descriptor)
    const gate = this.client.createGate([wholeInput(descriptor)])
    const texts = Array.from({ length: recordCount }, (_, index) =>
      this.worker.payload(1_500).toString('base64').concat(String(index)),
    )
    try {
      for (const [index, text] of texts.entries()) {
        await partition.emitRecord(Buffer.from(text), index % 4)
      }
      await partition.finish()
      const received = await readAll(gate)
      expect([...received.values()].flat().sort()).toEqual([...texts].sort())
      return undefined
    } catch (error) {
      if (!isShuffleError(error)) throw error
      return error.code
    } finally {
      partition.abort()
      await gate.close()
    }
  }
}

// With heads it holds too; one kind is enough for every run of all tests.
const kinds =
  process.env['SLUICE_FUZZ_MS'] === undefined ? (['ssd'] as const) : (['ssd', 'hdd'] as const)

describe.each(kinds)('one %s of three hung under full load', (kind) => {
  it('costs what lies on it, by its deadline, and nothing else', async () => {
    const load = await Load.start(kind)
    const { clock } = load.worker.world
    const running = load.run()
    await clock.advance(6_000)
    const codes = (ended: readonly Ended[]) => [...new Set(ended.map(({ code }) => code))]
    expect(codes(load.ended)).toEqual([undefined])
    expect(new Set(load.ended.map(({ path }) => path))).toEqual(new Set(disks))

    const hungMs = load.nowMs
    const answerAgain = load.hang()
    // Before anybody can know that it hangs: whatever the others hold goes on to its end.
    await clock.advance(diskTimeoutMs - 100)
    const before = load.endedBetween(hungMs + onTheWayMs, load.nowMs)
    expect(codes(before)).toEqual([undefined])
    expect(before.map(({ path }) => path)).not.toContain('/hung')
    expect(new Set(before.map(({ path }) => path))).toEqual(new Set(['/one', '/three']))

    // The deadlines: everything that waits for the disk is told, and begins anew elsewhere.
    await clock.advance(3 * diskTimeoutMs)
    const told = load.endedBetween(hungMs, load.nowMs).filter(({ code }) => code !== undefined)
    expect(codes(told)).toEqual(['DISK_FAILED'])
    expect(told.length).toBeLessThanOrEqual(taskCount)
    const suspectMs = load.nowMs
    for (let window = 0; window < 2; window += 1) {
      await clock.advance(2_000)
      const moved = load.endedBetween(load.nowMs - 2_000, load.nowMs)
      expect(moved.length).toBeGreaterThan(0)
      expect(codes(moved)).toEqual([undefined])
      expect(new Set(moved.map(({ path }) => path))).toEqual(new Set(['/one', '/three']))
      for (const { remainingMs } of load.worker.worker.waits) expect(remainingMs).toBeGreaterThan(0)
      expect(load.ended.every(({ startedMs, endedMs }) => endedMs - startedMs < 10_000)).toBe(true)
    }
    expect(load.endedBetween(suspectMs, load.nowMs).length).toBeGreaterThan(0)

    // It answers again: what was under way comes back, and it takes its share of what is new.
    answerAgain()
    await clock.advance(3_000)
    const backMs = load.nowMs
    await clock.advance(4_000)
    const after = load.endedBetween(backMs, load.nowMs)
    expect(codes(after)).toEqual([undefined])
    expect(new Set(after.map(({ path }) => path))).toEqual(new Set(disks))
    load.isOver = true
    await clock.drive(running)
    await clock.advance(2_000)
    expect(load.client.usage.buffersInUse).toBe(0)
    expect(load.client.waiters.list()).toEqual([])
    expect(load.client.connections.channelCount).toBe(0)
    await load.worker.expectNothingHeld()
    load.client.connections.close()
    await clock.drive(load.worker.worker.stop())
    // A stop does not wait for the probe of a disk.
    await clock.advance(diskTimeoutMs)
    expect(load.worker.world.disk('worker').openFileCount).toBe(0)
    // What could not be deleted while the disk was silent, the next start deletes.
    await clock.drive(load.startStoreAgain())
    const left = load.worker.world.disk('worker').filesBelow('/')
    expect(left.filter((path) => /\.(partial|data|segment)$/.test(path))).toEqual([])
  })

  it('does not keep the worker from stopping', async () => {
    const load = await Load.start(kind)
    const { clock } = load.worker.world
    const running = load.run()
    await clock.advance(2_000)
    load.hang()
    await clock.advance(500)
    load.isOver = true
    await clock.drive(load.worker.worker.stop(), { withinMs: 600_000 })
    load.client.connections.close()
    await clock.drive(running, { withinMs: 600_000 })
    expect(load.client.usage.buffersInUse).toBe(0)
    expect(load.client.connections.channelCount).toBe(0)
  })
})
