import { describe, expect, it } from 'vitest'
import type { ShuffleError } from '../../../client/common/errors.ts'
import { ShuffleError as Failure } from '../../../client/common/errors.ts'
import { silentLogger } from '../../../client/common/log.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { byteCountPages } from '../../../client/protocol/byte-counts.ts'
import type {
  CommittedTotals,
  PartitionWriter,
} from '../../../shuffle-worker/storage/storage-types.ts'
import { CreditGranter } from '../../../shuffle-worker/write/credit-granter.ts'
import { RegionTurns } from '../../../shuffle-worker/write/region-turns.ts'
import { WritingView } from '../../../shuffle-worker/write/writing-view.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { CountingSource } from './support/counting-source.ts'
import { FakeWriter, key } from './support/fake-writer.ts'

const bufferSizeBytes = 1024

class Bench {
  readonly clock = new VirtualClock()
  readonly waiters = new WaiterRegister({ clock: this.clock })
  readonly source = new CountingSource(64)
  readonly granter = new CreditGranter({
    source: this.source,
    shareBuffers: 64,
    minimumBuffers: 4,
    targetBuffers: 16,
    openRegionsMax: 8,
    isSuspended: () => this.isSuspect,
  })
  readonly writer = new FakeWriter(this.clock)
  readonly opened: PartitionWriter[] = []
  readonly view: WritingView
  isSuspect = false
  isOpened = false
  credit = 0
  committed: CommittedTotals | undefined
  error: ShuffleError | undefined
  ends = 0

  /** Bytes counted for the pages of WriteFinish. */
  pageBytes = 0
  pageBytesMax = 2 ** 20

  constructor(options: { readonly turns?: RegionTurns; readonly subpartitionCount?: number } = {}) {
    this.view = new WritingView({
      clock: this.clock,
      waiters: this.waiters,
      logger: silentLogger,
      key,
      bufferSizeBytes,
      subpartitionCount: options.subpartitionCount ?? 2,
      openTimeoutMs: 1000,
      regionTimeoutMs: 60_000,
      commitTimeoutMs: 120_000,
      reservePages: (bytes) => {
        if (this.pageBytes + bytes > this.pageBytesMax) return undefined
        this.pageBytes += bytes
        return {
          bytes,
          shrinkTo: () => undefined,
          release: () => {
            this.pageBytes -= bytes
          },
        }
      },
      output: {
        sendOpened: () => (this.isOpened = true),
        sendCredit: (_region, count) => (this.credit += count),
        sendCommitted: (totals) => (this.committed = totals),
        sendError: (error) => (this.error = error),
      },
      openWriter: () =>
        new Promise((resolve) => {
          this.clock.schedule(1, () => {
            this.opened.push(this.writer)
            resolve(this.writer)
          })
        }),
      writesOf: () => ({ granter: this.granter, turns: options.turns, batchBytes: 4096 }),
      onEnded: () => (this.ends += 1),
    })
  }

  start(regionIndex: number, boundBytes: number): void {
    this.view.regionStart({ regionIndex, boundBytes, isBroadcast: false })
  }

  /** Sends one full body when there is credit. */
  send(regionIndex = 0, length = bufferSizeBytes): void {
    const buffer = this.view.bodyBuffer(regionIndex, length)
    if (buffer === undefined) return
    this.credit -= 1
    this.view.data(regionIndex, buffer, length)
  }

  async sendAll(bodies: number): Promise<void> {
    for (let sent = 0; sent < bodies; sent++) {
      await this.clock.runUntil(() => this.credit > 0)
      this.send()
    }
  }

  finish(regionCount: number, byteCount: number): void {
    for (const { firstSubpartition, isLast, body } of byteCountPages([0, 0])) {
      const fields = { regionCount, byteCount, recordCount: 0, firstSubpartition, isLast }
      this.view.writeFinish(fields, body)
    }
  }

  async expectNothingHeld(): Promise<void> {
    await this.clock.settle()
    expect(this.source.used).toBe(0)
    expect(this.granter.heldBuffers).toBe(0)
    expect(this.waiters.count).toBe(0)
    expect(this.ends).toBe(1)
    expect(this.pageBytes).toBe(0)
  }
}

describe('writing view', () => {
  it('writes regions in batches within credit and commits', async () => {
    const bench = new Bench()
    bench.start(0, 40 * bufferSizeBytes)
    await bench.sendAll(40)
    bench.view.regionFinish({ regionIndex: 0, entryCount: 40, byteCount: 40 * bufferSizeBytes })
    bench.start(1, 0)
    bench.view.regionFinish({ regionIndex: 1, entryCount: 0, byteCount: 0 })
    bench.finish(2, 40 * bufferSizeBytes)
    await bench.clock.runUntil(() => bench.committed !== undefined)
    expect(bench.isOpened).toBe(true)
    expect(bench.writer.batches.reduce((sum, count) => sum + count, 0)).toBe(40)
    expect(bench.writer.batches.length).toBeLessThanOrEqual(11)
    expect(bench.writer.calls.slice(-3)).toEqual(['start 1', 'finish region 0', 'finish'])
    await bench.expectNothingHeld()
  })

  it('gives unused credit back when a region ends smaller than its bound', async () => {
    const bench = new Bench()
    bench.start(0, 40 * bufferSizeBytes)
    await bench.sendAll(1)
    bench.view.regionFinish({ regionIndex: 0, entryCount: 1, byteCount: bufferSizeBytes })
    await bench.clock.runUntil(() => bench.writer.calls.includes('finish region 1'))
    expect(bench.source.used).toBe(0)
    bench.view.close()
    await bench.expectNothingHeld()
  })

  it('fails data beyond credit, of another region, empty or too long', async () => {
    for (const send of [
      (bench: Bench) => {
        for (let count = 0; count < 100; count++) bench.send()
      },
      (bench: Bench) => {
        bench.send(1)
      },
      (bench: Bench) => {
        bench.send(0, 0)
      },
      (bench: Bench) => {
        bench.send(0, bufferSizeBytes + 1)
      },
    ]) {
      const bench = new Bench()
      bench.start(0, 100 * bufferSizeBytes)
      await bench.clock.runUntil(() => bench.credit > 0)
      send(bench)
      expect(bench.error?.code).toBe('PROTOCOL')
      expect(bench.view.bodyBuffer(0, 10)).toBeUndefined()
      await bench.clock.advance(100)
      await bench.expectNothingHeld()
    }
  })

  it('fails a region that holds more than its start said', async () => {
    const bench = new Bench()
    bench.start(0, bufferSizeBytes - 1)
    await bench.clock.runUntil(() => bench.credit > 0)
    bench.send()
    expect(bench.error?.code).toBe('PROTOCOL')
    await bench.expectNothingHeld()
  })

  it('refuses messages out of order', async () => {
    for (const act of [
      (bench: Bench) => {
        bench.start(1, 10)
      },
      (bench: Bench) => {
        bench.start(0, 10)
        bench.start(1, 10)
      },
      (bench: Bench) => {
        bench.view.regionFinish({ regionIndex: 0, entryCount: 0, byteCount: 0 })
      },
      (bench: Bench) => {
        bench.start(0, 10)
        bench.finish(1, 0)
      },
      (bench: Bench) => {
        bench.finish(0, 0)
        bench.finish(0, 0)
      },
      (bench: Bench) => {
        for (let region = 0; region < 100; region++) {
          bench.start(region, 0)
          bench.view.regionFinish({ regionIndex: region, entryCount: 0, byteCount: 0 })
        }
      },
    ]) {
      const bench = new Bench()
      await bench.clock.settle()
      act(bench)
      expect(bench.error?.code).toBe('PROTOCOL')
      await bench.clock.advance(100)
      await bench.expectNothingHeld()
      expect(bench.writer.calls).toContain('abort')
    }
  })

  it('leaks nothing when it is closed while it is being opened', async () => {
    const bench = new Bench()
    await bench.clock.settle()
    bench.view.close()
    bench.view.close()
    await bench.clock.advance(10)
    expect(bench.opened.length).toBe(1)
    expect(bench.writer.calls).toEqual(['abort'])
    expect(bench.isOpened).toBe(false)
    await bench.expectNothingHeld()
  })

  it('gives back what the disk is writing when it is closed midway, once the disk is done', async () => {
    const bench = new Bench()
    bench.writer.appendMs = 50
    bench.start(0, 100 * bufferSizeBytes)
    await bench.sendAll(6)
    bench.view.close()
    expect(bench.source.used).toBeGreaterThan(0)
    await bench.clock.advance(100)
    await bench.expectNothingHeld()
  })

  it('recycles a body that arrives after the write has ended', async () => {
    const bench = new Bench()
    bench.start(0, 10 * bufferSizeBytes)
    await bench.clock.runUntil(() => bench.credit > 0)
    const buffer = bench.view.bodyBuffer(0, 100)
    bench.view.close()
    if (buffer !== undefined) bench.view.data(0, buffer, 100)
    await bench.expectNothingHeld()
  })

  it('interrupts a region without progress, and not one that others keep waiting', async () => {
    const bench = new Bench()
    bench.start(0, 100 * bufferSizeBytes)
    await bench.clock.runUntil(() => bench.credit > 0)
    await bench.clock.advance(50_000)
    bench.send()
    await bench.clock.advance(50_000)
    expect(bench.error).toBeUndefined()
    await bench.clock.advance(20_000)
    expect(bench.error?.code).toBe('WRITE_INTERRUPTED')
    await bench.expectNothingHeld()
  })

  it('fails with the code of the disk when opening, writing or committing fails', async () => {
    for (const step of ['start', 'append', 'finish']) {
      const bench = new Bench()
      bench.writer.failures.set(step, new Failure('NO_SPACE', 'full'))
      bench.start(0, bufferSizeBytes)
      if (step !== 'start') {
        await bench.sendAll(1)
        bench.view.regionFinish({ regionIndex: 0, entryCount: 1, byteCount: bufferSizeBytes })
      }
      if (step === 'finish') bench.finish(1, bufferSizeBytes)
      await bench.clock.runUntil(() => bench.error !== undefined)
      expect(bench.error?.code).toBe('NO_SPACE')
      await bench.expectNothingHeld()
    }
  })

  it('gives up on a commit that takes too long', async () => {
    const bench = new Bench()
    bench.writer.finishMs = 200_000
    bench.finish(0, 0)
    await bench.clock.advance(121_000)
    expect(bench.error?.code).toBe('DISK_FAILED')
    expect(bench.committed).toBeUndefined()
    await bench.expectNothingHeld()
  })

  it('writes one region at a time where the disk has turns', async () => {
    const clock = new VirtualClock()
    const turns = new RegionTurns({ clock, idleMs: 1000 })
    const bench = new Bench({ turns })
    const other = turns.enter()
    await other.acquire()
    bench.start(0, 4 * bufferSizeBytes)
    await bench.sendAll(4)
    await bench.clock.advance(100)
    expect(bench.writer.batches).toEqual([])
    other.leave()
    await bench.clock.runUntil(() => bench.writer.batches.length > 0)
    bench.view.close()
    await bench.clock.advance(10)
    await bench.expectNothingHeld()
  })
})

describe('a WriteFinish of several pages', () => {
  const subpartitionCount = 100_000
  const pages = byteCountPages(new Float64Array(subpartitionCount))
  const totals = { regionCount: 0, byteCount: 0, recordCount: 0 }

  async function opened(): Promise<Bench> {
    const bench = new Bench({ subpartitionCount })
    await bench.clock.advance(5)
    return bench
  }

  function send(bench: Bench, index: number): void {
    const page = pages[index]
    if (page === undefined) throw new Error('there are two pages')
    const { firstSubpartition, isLast, body } = page
    bench.view.writeFinish({ ...totals, firstSubpartition, isLast }, body)
  }

  it('is counted until the write has ended', async () => {
    const bench = await opened()
    send(bench, 0)
    expect(bench.pageBytes).toBe(8 * subpartitionCount)
    await bench.clock.advance(59_000)
    send(bench, 1)
    await bench.clock.advance(1000)
    expect(bench.error).toBeUndefined()
    expect(bench.committed).toBeDefined()
    await bench.expectNothingHeld()
  })

  it('is interrupted when the last page does not come', async () => {
    const bench = await opened()
    send(bench, 0)
    await bench.clock.advance(60_000)
    expect(bench.error).toMatchObject({ code: 'WRITE_INTERRUPTED' })
    await bench.expectNothingHeld()
  })

  it('is BUSY when there is no memory for it', async () => {
    const bench = await opened()
    bench.pageBytesMax = 1000
    send(bench, 0)
    expect(bench.error).toMatchObject({ code: 'BUSY' })
    await bench.expectNothingHeld()
  })

  it('breaks the protocol with a short page that is not the last', async () => {
    const bench = await opened()
    bench.view.writeFinish({ ...totals, firstSubpartition: 0, isLast: false }, new Uint8Array(80))
    expect(bench.error).toMatchObject({ code: 'PROTOCOL' })
    await bench.expectNothingHeld()
  })
})
