import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partitionKeyText, type AttemptId, type PartitionKeyText } from '../../client/common/ids.ts'
import { managerApi } from '../../client/manager/api.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { ControlPlane, jobA, type FakeJobMaster } from '../support/control-plane.ts'
import { VirtualWorld } from '../support/virtual-world.ts'

const step = fc.record({
  what: fc.constantFrom(
    'allocate',
    'commit',
    'commit',
    'release',
    'lose',
    'zombie',
    'kill-worker',
    'start-worker',
    'restart-worker',
    'kill-manager',
    'start-manager',
    'short-wait',
    'wait',
    'long-wait',
  ),
  pick: fc.nat({ max: 1000 }),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** What one run knows besides the control plane. */
class Run {
  readonly world: VirtualWorld
  readonly plane: ControlPlane
  readonly master: FakeJobMaster
  readonly committed = new Set<string>()
  readonly pending: Promise<void>[] = []
  readonly all: ShuffleDescriptor[] = []
  readonly running: boolean[]
  readonly lostAt = new Map<PartitionKeyText, number>()
  readonly unheard = new Set<string>()
  #attempts = 0

  constructor(world: VirtualWorld, plane: ControlPlane, master: FakeJobMaster) {
    this.world = world
    this.plane = plane
    this.master = master
    this.running = plane.workers.map(() => true)
  }

  async do({ what, pick }: Step): Promise<void> {
    const { plane, world } = this
    const position = pick % plane.workers.length
    switch (what) {
      case 'allocate':
        this.#allocate(pick)
        break
      case 'commit':
        this.#commit(this.#anyOf([...this.master.held.values()], pick))
        break
      case 'release': {
        const descriptor = this.#anyOf([...this.master.held.values()], pick)
        if (descriptor !== undefined) this.master.release(descriptor)
        break
      }
      case 'lose': {
        const descriptor = this.#anyOf(this.all, pick)
        if (descriptor === undefined) break
        const at = this.#holderOf(descriptor)
        if (this.running[at] && this.committed.has(partitionKeyText(descriptor.key))) {
          plane.workers[at]?.store.lose([descriptor.key])
          this.lostAt.set(partitionKeyText(descriptor.key), at)
        }
        break
      }
      case 'zombie': {
        const descriptor = this.#anyOf(this.all, pick)
        if (descriptor === undefined || !this.running[this.#holderOf(descriptor)]) break
        const attemptId = `zombie-${String(pick)}` as AttemptId
        plane.commit({ ...descriptor, key: { ...descriptor.key, attemptId } })
        break
      }
      case 'kill-worker':
        this.#killWorker(position)
        break
      case 'start-worker':
        this.#startWorker(position)
        break
      case 'restart-worker':
        this.#killWorker(position)
        this.#startWorker(position)
        break
      case 'kill-manager':
        plane.killManager()
        break
      case 'start-manager':
        if (plane.manager === undefined) await plane.startManager()
        break
      case 'short-wait':
        await world.clock.advance(pick % 50)
        break
      case 'wait':
        await world.clock.advance(pick * 10)
        break
      case 'long-wait':
        await world.clock.advance(pick * 200)
    }
    await world.clock.advance(1)
  }

  /** All that was stopped runs, and nothing happens for longer than any of the numbers. */
  async quiet(): Promise<void> {
    if (this.plane.manager === undefined) await this.plane.startManager()
    this.running.forEach((_, position) => {
      this.#startWorker(position)
    })
    await this.world.clock.advance(300_000)
    await this.world.drive(Promise.all(this.pending))
  }

  #allocate(pick: number): void {
    const attempt = `a_${String(this.#attempts++)}`
    const wanted = { dataSet: `d${String(pick % 3)}`, index: pick % 20, attempt }
    this.pending.push(
      this.master.allocate(jobA, wanted).then(
        (descriptor) => {
          this.all.push(descriptor)
        },
        () => undefined,
      ),
    )
  }

  #commit(descriptor: ShuffleDescriptor | undefined): void {
    if (descriptor === undefined || !this.running[this.#holderOf(descriptor)]) return
    // A producer commits once.
    if (this.committed.has(partitionKeyText(descriptor.key))) return
    this.plane.commit(descriptor)
    this.committed.add(partitionKeyText(descriptor.key))
  }

  #killWorker(position: number): void {
    if (!this.running[position]) return
    this.plane.workers[position]?.kill()
    this.running[position] = false
    // A loss that it took to the grave is found by the first consumer.
    for (const [name, at] of this.lostAt) {
      if (at === position && this.master.held.has(name)) this.unheard.add(name)
    }
  }

  #startWorker(position: number): void {
    if (this.running[position]) return
    this.plane.workers[position]?.start()
    this.running[position] = true
  }

  #holderOf(descriptor: ShuffleDescriptor): number {
    return this.plane.workers.findIndex(
      (worker) => worker.store.workerId === descriptor.holders[0]?.workerId,
    )
  }

  #anyOf<T>(from: readonly T[], pick: number): T | undefined {
    return from[pick % Math.max(1, from.length)]
  }
}

async function converges(seed: number, steps: readonly Step[]): Promise<void> {
  const world = new VirtualWorld({ seed })
  const plane = await ControlPlane.start(world, 2)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const run = new Run(world, plane, master)
  for (const one of steps) await run.do(one)
  await run.quiet()

  const held = [...master.held.keys()].filter((name) => !run.unheard.has(name)).sort()
  const heldAndCommitted = held.filter((name) => run.committed.has(name))
  const stored = plane.workers.flatMap((worker) => worker.store.keys()).sort()
  expect(stored, 'workers have what the job master counts on, and nothing else').toEqual(
    heldAndCommitted,
  )
  const records = plane.workers.reduce((sum, worker) => sum + worker.store.partitions.size, 0)
  expect(records, 'every release is confirmed').toBe(stored.length)
  const { partitions } = await world.drive(
    plane.watcher.call(managerApi.listPartitions, {
      params: { jobId: jobA },
      query: {},
      body: undefined,
    }),
  )
  const known = partitions
    .map(({ dataSetId, partitionIndex, attemptId, state }) => ({
      name: [jobA, dataSetId, partitionIndex, attemptId].join(' '),
      state,
    }))
    .filter(({ name }) => !run.unheard.has(name))
    .map(({ name, state }) => `${name} ${state}`)
  expect(known.sort(), 'the manager knows just that').toEqual(
    held.map((name) => `${name} ${run.committed.has(name) ? 'committed' : 'allocated'}`).sort(),
  )
}

test('after any faults and a quiet time manager, job master and workers agree on what exists', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.array(step, { minLength: 5, maxLength: 40 }), converges),
    { numRuns: 12, seed: 20_261_129, endOnFailure: true },
  )
}, 120_000)
