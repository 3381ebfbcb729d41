// Writes of all kinds at once, drawn from a seed: producers of the real client, several on one
// connection, a real worker on virtual disks. Records of every size, producers that pause, that are
// aborted in the middle of a step, connections that are cut, disks that fail, fill, hang, memory that
// others hold. Whatever happens each write ends, committed with the bytes that were emitted or with an
// error that says why, and gives everything back.

import { expect } from 'vitest'
import { type ErrorCode, isShuffleError } from '../../../../client/common/errors.ts'
import type { Waiter, WaitOptions } from '../../../../client/common/waiters.ts'
import type { ShuffleDescriptor } from '../../../../client/master/shuffle-descriptor.ts'
import type { ResultPartition } from '../../../../client/write/result-partition.ts'
import {
  ClientBench,
  descriptorOf,
  readAll,
  type Received,
  wholeInput,
} from '../../../client/support/client-bench.ts'
import { clusterId } from '../../../client/support/fake-worker.ts'
import { VirtualRandom } from '../../../support/virtual-random.ts'
import { dataPort, WorkerBench } from '../../support/worker-bench.ts'

interface Emission {
  /** Undefined: to all. */
  readonly subpartition: number | undefined
  /** Of an event; undefined: a record. */
  readonly code: number | undefined
  readonly bytes: Buffer
  readonly pauseMs: number
}

interface Producer {
  readonly descriptor: ShuffleDescriptor
  readonly partition: ResultPartition
  readonly emissions: readonly Emission[]
  isAborted: boolean
  /** The code of what ended it, 'committed', or what should never be. */
  outcome: string
}

const endsWithinMs = 1_200_000
const eventCode = 3

/** How a write may end that was disturbed. */
const endings: readonly ErrorCode[] = [
  'DISK_FAILED',
  'NO_SPACE',
  'STALE_ALLOCATION',
  'WORKER_UNREACHABLE',
  'WRITE_INTERRUPTED',
]

export class WriteFuzz {
  readonly #random: VirtualRandom
  readonly #producers: Producer[] = []
  readonly #held: (() => void)[] = []
  #bench!: WorkerBench
  #clients: ClientBench[] = []
  #paths: readonly string[] = []
  #isDisturbed = false
  #openWritesMax = 0

  constructor(seed: number) {
    this.#random = new VirtualRandom(`write ${String(seed)}`)
  }

  /** Rejects where a write does not end, or not as it should. */
  async run(): Promise<void> {
    await this.#start()
    const { clock } = this.#bench.world
    const count = 1 + this.#draw(14)
    for (let index = 0; index < count; index += 1) {
      clock.schedule(this.#draw(2) * this.#draw(100), () => {
        this.#produce(index)
      })
    }
    const disturbances = this.#draw(4)
    for (let each = 0; each < disturbances; each += 1) this.#disturb()
    const squeezes = this.#draw(3)
    for (let each = 0; each < squeezes; each += 1) this.#squeeze()
    const isDone = () =>
      this.#producers.length === count && this.#producers.every(({ outcome }) => outcome !== '')
    await clock.runUntil(isDone, { withinMs: endsWithinMs })
    this.#giveBack()
    for (const producer of this.#producers) this.#checkOutcome(producer)
    await this.#checkGivenBack()
    for (const producer of this.#producers) await this.#checkContent(producer)
    await this.#checkNothingLeft()
  }

  async #start(): Promise<void> {
    const kind = this.#oneOf(['ssd', 'ssd', 'hdd'] as const)
    this.#openWritesMax = this.#oneOf([2, 8192])
    this.#paths = ['/one', '/two', '/three'].slice(0, 1 + this.#draw(3))
    this.#bench = await WorkerBench.start(
      {
        clusterId,
        // The larger, the fewer there are.
        bufferSizeBytes: this.#oneOf([4096, 32_768, 65_536]),
        memoryBytes: 8 * 1024 * 1024,
        smallPartitionBytes: this.#oneOf([0, 2048, 65_536]),
        durability: this.#oneOf(['none', 'sync'] as const),
        openWritesMax: this.#openWritesMax,
        diskTimeoutMs: 5_000,
        diskProbeIntervalMs: 1_000,
        preferredDiskKind: kind,
      },
      { kind, paths: this.#paths, seed: this.#draw(1_000_000) },
    )
    const { world } = this.#bench
    world.network.configure({
      latencyMs: this.#oneOf([
        [0.05, 0.5],
        [1, 20],
      ] as const),
      windowBytes: this.#oneOf([1024, 20_000, 262_144]),
      chunking: this.#oneOf(['whole', 'random', { maxBytes: 3000 }] as const),
    })
    if (this.#draw(3) === 0) {
      world.disk('worker').inject({ fault: { kind: 'slow', delayMs: this.#draw(40) } })
    }
    this.#clients = Array.from({ length: 1 + this.#draw(2) }, () => new ClientBench({ world }))
  }

  #produce(partitionIndex: number): void {
    const bufferSizeBytes = this.#oneOf([1024, 1500, 4096])
    const memoryBytes = (8 + this.#draw(2) * this.#draw(40)) * bufferSizeBytes
    const subpartitionCount = this.#oneOf([1, 3, 6, 400])
    const place = { workerId: this.#bench.worker.workerId, host: 'worker', port: dataPort }
    const descriptor = descriptorOf(place, {
      partitionIndex,
      bufferSizeBytes,
      subpartitionCount,
      codec: this.#oneOf(['lz4', 'none']),
      ...(this.#draw(2) === 0 ? {} : { expectedBytes: this.#draw(200_000) }),
    })
    const client = this.#oneOf(this.#clients)
    const partition = client.createPartition(descriptor, { memoryBytes })
    const emissions = Array.from(
      { length: this.#oneOf([0, this.#draw(10), this.#draw(80), this.#draw(200)]) },
      () => this.#emission(subpartitionCount, { bufferSizeBytes, memoryBytes }),
    )
    const producer: Producer = {
      descriptor,
      partition,
      emissions,
      isAborted: false,
      outcome: '',
    }
    this.#producers.push(producer)
    if (this.#draw(4) === 0) this.#abortSomewhere(producer, client)
    void this.#emitAll(producer)
  }

  async #emitAll(producer: Producer): Promise<void> {
    const { partition, emissions } = producer
    try {
      for (const emission of emissions) {
        if (emission.pauseMs > 0) await this.#pass(emission.pauseMs)
        const wait = emit(partition, emission)
        if (wait !== undefined) await wait
      }
      const { recordCount } = await partition.finish()
      expect(recordCount).toBe(emissions.filter(({ code }) => code === undefined).length)
      producer.outcome = 'committed'
    } catch (error) {
      producer.outcome = isShuffleError(error) ? error.code : String(error)
      if (producer.outcome === 'PROTOCOL') producer.outcome += `: ${String(error)}`
    }
  }

  #emission(
    subpartitionCount: number,
    { bufferSizeBytes, memoryBytes }: { bufferSizeBytes: number; memoryBytes: number },
  ): Emission {
    const isEvent = this.#draw(8) === 0
    const near = (bytes: number) => Math.max(0, bytes - 90 + this.#draw(100))
    const longest = bufferSizeBytes - 64
    const length = this.#oneOf([
      0,
      this.#draw(30),
      this.#draw(30),
      this.#draw(300),
      near(1024),
      near(bufferSizeBytes),
      near(this.#draw(memoryBytes)),
      this.#draw(10) === 0 ? near(memoryBytes) : 7,
    ])
    return {
      subpartition: this.#draw(12) === 0 ? undefined : this.#draw(subpartitionCount),
      code: isEvent ? eventCode : undefined,
      bytes: this.#bytes(isEvent ? Math.min(length, longest) : length),
      pauseMs: this.#draw(30) === 0 ? this.#draw(2000) : 0,
    }
  }

  /** That compress well, somewhat, or not at all. */
  #bytes(length: number): Buffer {
    const kind = this.#draw(3)
    if (kind === 0) return Buffer.alloc(length, this.#draw(256))
    const bytes = this.#random.bytes(length)
    if (kind === 1) bytes.fill(7, 0, Math.floor(length * this.#random.float()))
    return bytes
  }

  /** Between two steps of what follows one of its waits, or at some time. */
  #abortSomewhere(producer: Producer, client: ClientBench): void {
    const abort = () => {
      producer.isAborted = true
      producer.partition.abort(new Error('the task is cancelled'))
    }
    if (this.#draw(3) === 0) {
      this.#bench.world.clock.schedule(this.#random.float() * 300, abort)
      return
    }
    let left = this.#draw(40)
    const steps = this.#draw(8)
    afterWait(client, (waited) => {
      left -= 1
      if (left !== 0) return
      let step: Promise<unknown> = waited
      for (let count = 0; count < steps; count += 1) step = step.then(() => undefined)
      void step.then(abort, abort)
    })
  }

  #disturb(): void {
    this.#isDisturbed = true
    const { clock, network } = this.#bench.world
    const disk = this.#bench.world.disk('worker')
    const path = this.#oneOf(this.#paths)
    const atMs = this.#random.float() * this.#oneOf([5, 50, 500])
    const lastsMs = this.#draw(20_000)
    const kind = this.#draw(6)
    const after = this.#draw(2) * this.#draw(20)
    const code = this.#oneOf(['EIO', 'ENOSPC'])
    const room = this.#draw(100_000)
    const bytes = this.#draw(60_000)
    clock.schedule(atMs, () => {
      if (kind === 0) for (const link of network.linksOf('worker', 'task')) link.cut()
      else if (kind === 1) network.linksOf('worker', 'task')[0]?.cutAfter('client', bytes)
      else if (kind === 2) {
        network.partition('worker', 'task')
        clock.schedule(lastsMs * 3, () => {
          network.heal('worker', 'task')
        })
      } else if (kind === 3) disk.inject({ fault: { kind: 'error', code }, path, after, times: 1 })
      else if (kind === 4) disk.setCapacity(path, room)
      else {
        const hang = disk.inject({ fault: { kind: 'hang' }, path, after })
        clock.schedule(lastsMs, () => {
          hang.remove()
          disk.releaseHung()
        })
      }
    })
  }

  /** Others take nearly all of one kind of memory, for a while. */
  #squeeze(): void {
    const { clock } = this.#bench.world
    const { ledger } = this.#bench.worker
    const purpose = this.#oneOf(['write', 'index', 'control'] as const)
    const leaves = this.#draw(60_000)
    clock.schedule(this.#random.float() * 50, () => {
      const free = ledger.partBytes(purpose) - ledger.usedBytes(purpose)
      const taken = ledger.tryReserve({ purpose, bytes: Math.max(0, free - leaves) })
      if (taken === undefined) return
      this.#held.push(() => {
        taken.release()
      })
      clock.schedule(this.#draw(15_000), this.#giveBack)
    })
  }

  readonly #giveBack = (): void => {
    for (const release of this.#held.splice(0)) release()
  }

  #checkOutcome({ outcome, isAborted, descriptor }: Producer): void {
    const allowed: string[] = ['committed']
    if (isAborted) allowed.push('CANCELLED')
    // Two producers that pause keep the others out for longer than they ask.
    if (this.#openWritesMax === 2) allowed.push('BUSY')
    if (this.#isDisturbed) allowed.push(...endings)
    expect(allowed, `partition ${String(descriptor.key.partitionIndex)}`).toContain(outcome)
  }

  async #checkGivenBack(): Promise<void> {
    await this.#bench.world.clock.advance(120_000)
    await this.#bench.expectNothingHeld()
    for (const client of this.#clients) {
      expect(client.usage.buffersInUse).toBe(0)
      expect(client.waiters.list()).toEqual([])
      expect(client.connections.channelCount).toBe(0)
    }
    for (const directory of this.#bench.worker.store.directories) {
      expect(directory.space.reservedBytes, directory.path).toBe(0)
    }
    for (const { descriptor } of this.#producers) {
      expect(this.#bench.worker.store.lookup(descriptor.key).state).not.toBe('writing')
    }
  }

  async #checkContent({ descriptor, emissions, outcome }: Producer): Promise<void> {
    if (outcome !== 'committed') return
    const found = this.#bench.worker.store.lookup(descriptor.key)
    // Its disk was given up.
    if (this.#isDisturbed && found.state === 'lost') return
    expect(found.state).toBe('committed')
    const [client] = this.#clients
    if (client === undefined) throw new Error('there is a client')
    const memoryBytes = 16 * descriptor.bufferSizeBytes
    const gate = client.createGate([wholeInput(descriptor)], { memoryBytes })
    const received = await client.drive(readAll(gate))
    const expected = expectedOf(emissions, descriptor.subpartitionCount)
    expect([...received.keys()].sort()).toEqual([...expected.keys()].sort())
    for (const [where, records] of expected) {
      expect(received.get(where)?.join('\n') === records.join('\n'), where).toBe(true)
    }
  }

  async #checkNothingLeft(): Promise<void> {
    const { worker, world } = this.#bench
    for (const client of this.#clients) client.connections.close()
    const keys = this.#producers.map(({ descriptor }) => descriptor.key)
    worker.store.release(keys)
    await world.clock.advance(400_000)
    await world.drive(worker.stop())
    await world.clock.advance(60_000)
    const left = world.disk('worker').filesBelow('/')
    if (!this.#isDisturbed) {
      expect(left.filter((path) => /\.(partial|data)$/.test(path))).toEqual([])
    }
    expect(world.disk('worker').openFileCount).toBe(0)
    expect(world.clock.timerCount).toBe(0)
  }

  #pass(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#bench.world.clock.schedule(durationMs, resolve)
    })
  }

  #draw(count: number): number {
    return Math.floor(this.#random.float() * count)
  }

  #oneOf<T>(values: readonly T[]): T {
    const value = values[this.#draw(values.length)]
    if (value === undefined) throw new Error('something is drawn')
    return value
  }
}

function emit(
  partition: ResultPartition,
  { subpartition, code, bytes }: Emission,
): Promise<void> | undefined {
  if (subpartition === undefined) {
    return code === undefined
      ? partition.broadcastRecord(bytes)
      : partition.broadcastEvent(code, bytes)
  }
  return code === undefined
    ? partition.emitRecord(bytes, subpartition)
    : partition.emitEvent(code, bytes, subpartition)
}

function expectedOf(emissions: readonly Emission[], subpartitionCount: number): Received {
  const expected: Received = new Map()
  for (const { subpartition, code, bytes } of emissions) {
    const text = bytes.toString('latin1')
    const line = code === undefined ? text : `event ${String(code)} ${text}`
    const first = subpartition ?? 0
    const last = subpartition ?? subpartitionCount - 1
    for (let each = first; each <= last; each += 1) {
      const place = `0/${String(each)}`
      const lines = expected.get(place)
      if (lines === undefined) expected.set(place, [line])
      else lines.push(line)
    }
  }
  return expected
}

/** Tells each wait that the client begins from now on. */
function afterWait(client: ClientBench, onWait: (waited: Promise<unknown>) => void): void {
  const register = client.waiters as { wait: <T>(options: WaitOptions) => Waiter<T> }
  const wait = register.wait.bind(client.waiters)
  register.wait = <T>(options: WaitOptions) => {
    const waiter = wait<T>(options)
    onWait(waiter.promise)
    return waiter
  }
}
