import { beforeEach, describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import type { DiskOperationKind } from '../../../shuffle-worker/storage/disk-operation.ts'
import { DiskQueue } from '../../../shuffle-worker/storage/disk-queue.ts'
import { deferred, type Deferred } from '../../support/deferred.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const timeoutMs = 30_000

class Bench {
  readonly clock = new VirtualClock()
  readonly measured: string[] = []
  readonly troubles: string[] = []
  fullCount = 0
  readonly started: Deferred<string>[] = []
  readonly queue = new DiskQueue({
    clock: this.clock,
    directory: '/data',
    limits: { total: 3, read: 2, write: 1, control: 1 },
    operationTimeoutMs: timeoutMs,
    observer: {
      measured: (kind, _seconds, outcome) => this.measured.push(`${kind} ${outcome}`),
      troubled: (error) => this.troubles.push(error.code),
      full: () => {
        this.fullCount += 1
      },
    },
  })

  submit(kind: DiskOperationKind, onLate?: (value: string) => void) {
    return this.queue.submit({
      kind,
      run: () => {
        const end = deferred<string>()
        this.started.push(end)
        return end.promise
      },
      ...(onLate === undefined ? {} : { onLate }),
    })
  }
}

let bench: Bench

beforeEach(() => {
  bench = new Bench()
})

describe('a disk queue', () => {
  it('keeps each lane, and all together, within their limits', async () => {
    const reads = [bench.submit('read'), bench.submit('read'), bench.submit('read')]
    const writes = [bench.submit('write'), bench.submit('sync')]
    bench.submit('open')
    expect(bench.started).toHaveLength(3)
    expect(bench.queue.waitingCount).toBe(3)
    bench.started[0]?.resolve('first')
    expect(await reads[0]?.result).toBe('first')
    await bench.clock.settle()
    expect(bench.started).toHaveLength(4)
    expect(bench.queue.inFlightCount).toBe(3)
    expect(writes).toHaveLength(2)
  })

  it('gives free slots to the lanes in turn', async () => {
    for (let count = 0; count < 3; count += 1) bench.submit('read')
    bench.submit('write')
    bench.submit('open')
    // Two reads and the write run; the next slot is the open's, though a read came first.
    bench.started[0]?.resolve('')
    await bench.clock.settle()
    bench.started[2]?.resolve('')
    await bench.clock.settle()
    expect(bench.measured).toEqual(['read ok', 'write ok'])
    expect(bench.started).toHaveLength(5)
  })

  it('fails a call at its deadline but keeps its slot until it really ends', async () => {
    const { result, ended } = bench.submit('write')
    const next = bench.submit('read')
    await bench.clock.advance(timeoutMs - 1)
    bench.started[1]?.resolve('read')
    await next.result
    await bench.clock.advance(1)
    await expect(result).rejects.toMatchObject({
      code: 'DISK_FAILED',
      fields: { systemCode: 'ETIMEDOUT', operation: 'write' },
    })
    expect(bench.troubles).toEqual(['DISK_FAILED'])
    expect(bench.queue.inFlightCount).toBe(1)
    let hasEnded = false
    void ended.then(() => {
      hasEnded = true
    })
    await bench.clock.settle()
    expect(hasEnded).toBe(false)
    bench.started[0]?.resolve('late')
    await ended
    expect(bench.queue.inFlightCount).toBe(0)
    expect(bench.measured).toContain('write late')
  })

  it('hands the value of a late call to whoever must give it back', async () => {
    const late: string[] = []
    const { result } = bench.submit('open', (value) => late.push(value))
    await bench.clock.advance(timeoutMs)
    await expect(result).rejects.toThrow()
    bench.started[0]?.resolve('file')
    await bench.clock.settle()
    expect(late).toEqual(['file'])
  })

  it('refuses what waits for slots that are all held by late calls, and serves other lanes', async () => {
    const hung = bench.submit('write')
    const waiting = bench.submit('write')
    await bench.clock.advance(timeoutMs)
    await expect(hung.result).rejects.toThrow()
    await expect(waiting.result).rejects.toMatchObject({ code: 'DISK_FAILED' })
    await expect(bench.submit('sync').result).rejects.toMatchObject({ code: 'DISK_FAILED' })
    const read = bench.submit('read')
    bench.started[1]?.resolve('served')
    expect(await read.result).toBe('served')
    bench.started[0]?.resolve('')
    await hung.ended
    const again = bench.submit('write')
    bench.started[2]?.resolve('again')
    expect(await again.result).toBe('again')
  })

  it('says that the disk is in trouble when it answers that it is broken', async () => {
    const { result } = bench.submit('read')
    bench.started[0]?.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
    await expect(result).rejects.toMatchObject({ code: 'DISK_FAILED' })
    expect(bench.troubles).toEqual(['DISK_FAILED'])
    const missing = bench.submit('open')
    bench.started[1]?.reject(Object.assign(new Error('ENOENT'), { code: 'ENOENT' }))
    await expect(missing.result).rejects.toThrow()
    expect(bench.troubles).toHaveLength(1)
  })

  it('says that the disk is full when any call is told so, which is no trouble', async () => {
    for (const [index, code] of ['ENOSPC', 'EDQUOT'].entries()) {
      const { result } = bench.submit('open')
      bench.started[index]?.reject(Object.assign(new Error(code), { code }))
      await expect(result).rejects.toMatchObject({ code: 'NO_SPACE' })
      expect(bench.fullCount).toBe(index + 1)
    }
    expect(bench.troubles).toEqual([])
  })

  it('runs a probe past all that waits, one at a time', async () => {
    for (let count = 0; count < 5; count += 1) bench.submit('read')
    const end = deferred<undefined>()
    const probe = bench.queue.probe(() => end.promise)
    expect(bench.queue.isProbing).toBe(true)
    expect(() => bench.queue.probe(() => end.promise)).toThrow(/one probe/)
    end.resolve(undefined)
    await probe.result
    await probe.ended
    expect(bench.queue.isProbing).toBe(false)
  })

  it('still closes files on a disk that is given up', async () => {
    const error = new ShuffleError('DISK_FAILED', 'given up')
    bench.queue.refuseAll(error)
    await expect(bench.submit('read').result).rejects.toBe(error)
    const close = bench.submit('close')
    await expect(close.result).rejects.toBe(error)
    expect(bench.started).toHaveLength(1)
    bench.started[0]?.resolve('')
    await close.ended
  })

  it('leaves no timer when all has ended', async () => {
    const { result } = bench.submit('read')
    bench.started[0]?.resolve('')
    await result
    await bench.clock.settle()
    expect(bench.clock.timerCount).toBe(0)
  })
})
