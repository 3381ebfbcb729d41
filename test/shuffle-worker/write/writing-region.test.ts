import { describe, expect, it } from 'vitest'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import { CreditGranter } from '../../../shuffle-worker/write/credit-granter.ts'
import { WritingRegion } from '../../../shuffle-worker/write/writing-region.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { CountingSource, jobId } from './support/counting-source.ts'
import { FakeWriter } from './support/fake-writer.ts'

const bufferSizeBytes = 1024

function make(sourceBuffers: number) {
  const clock = new VirtualClock()
  const waiters = new WaiterRegister({ clock })
  const source = new CountingSource(sourceBuffers)
  const granter = new CreditGranter({
    source,
    shareBuffers: sourceBuffers,
    minimumBuffers: 4,
    targetBuffers: 8,
    openRegionsMax: 8,
    isSuspended: () => false,
  })
  const writer = new FakeWriter(clock)
  const failures: unknown[] = []
  let credit = 0
  const region = new WritingRegion({
    waiters,
    writes: { granter, turns: undefined, batchBytes: 4 * bufferSizeBytes },
    writer,
    regionIndex: 0,
    boundBytes: 100 * bufferSizeBytes,
    bufferSizeBytes,
    timeoutMs: 1000,
    onGrant: (count) => (credit += count),
    onWriting: () => undefined,
    onFailed: (error) => failures.push(error),
  })
  const send = (length = bufferSizeBytes) => {
    const buffer = region.takeBuffer()
    if (buffer !== undefined) region.add({ buffer, length })
  }
  return { clock, waiters, source, granter, writer, region, failures, send, credit: () => credit }
}

describe('writing region', () => {
  it('gathers a batch before it writes, and what is left at the end', async () => {
    const { clock, region, writer, send, waiters } = make(64)
    region.enter()
    for (let count = 0; count < 3; count++) send()
    await clock.settle()
    expect(writer.batches).toEqual([])
    send()
    await clock.advance(1)
    expect(writer.batches).toEqual([4])
    send()
    await clock.drive(region.finish())
    expect(writer.batches).toEqual([4, 1])
    region.close()
    expect(waiters.count).toBe(0)
  })

  it('writes what it has when its credit is used up', async () => {
    const { clock, region, writer, send, granter } = make(4)
    region.enter()
    // Smaller bodies than a batch, but no more can come before these are written.
    for (let count = 0; count < 4; count++) send(100)
    await clock.advance(1)
    expect(writer.batches).toEqual([4])
    await clock.advance(5)
    expect(granter.unspentBuffers).toBe(4)
    region.close()
    expect(granter.heldBuffers).toBe(0)
  })

  it('waits as long for its first credit as the others of the disk make progress', async () => {
    const { clock, region, granter, failures } = make(4)
    const other = granter.enter({ jobId, neededBuffers: 100, onGrant: () => undefined })
    region.enter()
    for (let second = 0; second < 5; second++) {
      other.take()?.recycle()
      await clock.advance(900)
    }
    expect(failures).toEqual([])
    await clock.advance(2100)
    expect(failures).toMatchObject([{ code: 'WRITE_INTERRUPTED' }])
    region.close()
    other.close()
  })

  it('takes nothing more once it is finished or closed', async () => {
    const { clock, region } = make(8)
    region.enter()
    await clock.drive(region.finish())
    expect(region.takeBuffer()).toBeUndefined()
    region.close()
    region.close()
    expect(region.takeBuffer()).toBeUndefined()
  })
})
