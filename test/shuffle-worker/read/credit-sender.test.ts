import { describe, expect, it } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { SegmentReader } from '../../../client/protocol/read-segment.ts'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import { CreditSender, creditMax } from '../../../shuffle-worker/read/credit-sender.ts'
import { ReadMemory } from '../../../shuffle-worker/read/read-memory.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const bufferSizeBytes = 4096

function make(options: { readonly credit?: number; readonly unread?: () => number } = {}) {
  const clock = new VirtualClock()
  const ledger = new MemoryLedger({ clock, totalBytes: 1024 * 1024, bufferSizeBytes })
  const memory = new ReadMemory(ledger)
  const sent: { readonly bytes: Buffer; readonly segments: string[] }[] = []
  const backlogs: number[] = []
  /** The entry, and how many bodies were sent before it. */
  const finished: [number, number][] = []
  const output = {
    isWritable: true,
    sendData: (buffer: PooledBuffer, length: number) => {
      const bytes = Buffer.from(buffer.bytes.subarray(0, length))
      const segments: string[] = []
      const reader = new SegmentReader().reset(bytes, length)
      while (reader.next()) {
        const { partition, regionIndex, subpartition, entriesStart, entriesEnd } = reader
        segments.push([partition, regionIndex, subpartition, entriesEnd - entriesStart].join('/'))
      }
      sent.push({ bytes, segments })
      buffer.recycle()
    },
    sendBacklog: (count: number) => {
      backlogs.push(count)
    },
  }
  const sender = new CreditSender({
    clock,
    memory,
    output,
    bufferSizeBytes,
    initialCredit: options.credit ?? 2,
    aheadBytesMax: 1024 * 1024,
    flushAfterMs: 20,
    flushLateAfterMs: 100,
    jobId: () => undefined,
    unreadBytes: options.unread ?? (() => 0),
    onFlushed: () => undefined,
    onFinish: ({ partition }) => {
      finished.push([partition, sent.length])
    },
  })
  const append = (partition: number, length: number) =>
    sender.append({ partition, regionIndex: 0, subpartition: 0 }, Buffer.alloc(length, partition))
  return { clock, ledger, memory, sent, backlogs, finished, output, sender, append }
}

describe('credit sender', () => {
  it('packs entries of many places into one body, a segment for each change of place', async () => {
    const { clock, append, sent } = make()
    append(1, 100)
    append(1, 50)
    append(2, 30)
    append(1, 20)
    await clock.advance(99)
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent.map(({ segments }) => segments)).toEqual([['1/0/0/150', '2/0/0/30', '1/0/0/20']])
  })

  it('sends a body at once when it is full, or when nothing more is to come', () => {
    const { append, sent, sender } = make()
    append(1, 3000)
    append(1, 3000)
    sender.pump()
    expect(sent.length).toBe(1)
    sender.setDrained(true)
    expect(sent.length).toBe(2)
    expect(sender.isEmpty).toBe(true)
  })

  it('never sends beyond its credit, and goes on when more is granted', () => {
    const { append, sent, sender } = make()
    for (let count = 0; count < 5; count++) append(1, 4000)
    sender.pump()
    expect(sent.length).toBe(2)
    expect(sender.credit).toBe(0)
    sender.addCredit(2)
    expect(sent.length).toBe(4)
    sender.setDrained(true)
    expect(sent.length).toBe(4)
    sender.addCredit(1)
    expect(sent.length).toBe(5)
  })

  it('holds only a little ahead of its credit, and less when all channels together hold much', () => {
    const { append, sender, memory } = make({ credit: 0 })
    let count = 0
    while (append(1, 4000)) count += 1
    expect(count).toBe(16)
    expect(memory.aheadBuffers).toBe(16)
    expect(sender.roomBytes).toBeLessThan(bufferSizeBytes)
    sender.close()
    expect(memory.aheadBuffers).toBe(0)
  })

  it('keeps an old body open for more while there is no credit for it', async () => {
    const { clock, append, sent, sender } = make({ credit: 0 })
    append(1, 100)
    await clock.advance(100)
    append(1, 100)
    sender.addCredit(1)
    expect(sent.map(({ segments }) => segments)).toEqual([['1/0/0/200']])
  })

  it('sends nothing and takes nothing while the connection is full', () => {
    const { append, sent, sender, output } = make()
    output.isWritable = false
    append(1, 4000)
    append(1, 4000)
    sender.pump()
    expect(sent).toEqual([])
    expect(sender.roomBytes).toBe(0)
    output.isWritable = true
    sender.setDrained(true)
    expect(sent.length).toBe(2)
  })

  it('sends an unfilled body sooner while memory is short, so that others get its buffer', async () => {
    const { clock, append, ledger, sent } = make()
    const count = ledger.freeCount('read') - 4
    const taken = ledger.tryAcquire({ purpose: 'read', count }) ?? []
    append(1, 100)
    await clock.advance(19)
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent).toHaveLength(1)
    for (const buffer of taken) buffer.recycle()
    append(1, 100)
    await clock.advance(99)
    expect(sent).toHaveLength(1)
    await clock.advance(1)
    expect(sent).toHaveLength(2)
  })

  it('says when it found no memory, and takes again when there is some', () => {
    const { append, sender, ledger } = make({ credit: 1000 })
    while (append(1, 4000));
    expect(sender.isStarved).toBe(true)
    sender.pump()
    expect(ledger.usedBytes('read')).toBe(0)
    expect(append(1, 4000)).toBe(true)
    expect(sender.isStarved).toBe(false)
    sender.close()
    expect(ledger.usedBytes('read')).toBe(0)
  })

  it('finishes an entry after its data, at once when there is none', () => {
    const { append, finished, sender } = make({ credit: 1 })
    const finish = (partition: number) => {
      sender.finishAfterSent({ partition, entryCount: 1, byteCount: 4000 })
    }
    finish(0)
    expect(finished).toEqual([[0, 0]])
    append(1, 4000)
    finish(1)
    append(2, 4000)
    finish(2)
    sender.setDrained(true)
    expect(finished.slice(1)).toEqual([[1, 1]])
    sender.addCredit(1)
    expect(finished.slice(2)).toEqual([[2, 2]])
  })

  it('announces again before the last backlog is used up, and when it was far too much', () => {
    let unread = 100 * bufferSizeBytes
    const { append, backlogs, sender } = make({ credit: 1000, unread: () => unread })
    sender.announceBacklog()
    expect(backlogs).toEqual([100])
    for (let count = 0; count < 101; count++) {
      append(1, 4000)
      sender.pump()
    }
    expect(backlogs.length).toBeGreaterThan(1)
    unread = bufferSizeBytes
    sender.pump()
    expect(backlogs.at(-1)).toBeLessThanOrEqual(2)
  })

  it('refuses credit that nobody can mean, and ignores credit after its end', () => {
    const { sender, clock, append, ledger } = make()
    append(1, 10)
    expect(sender.addCredit(creditMax)).toBe(false)
    sender.close()
    sender.close()
    expect(sender.addCredit(creditMax)).toBe(true)
    expect(append(1, 10)).toBe(false)
    ledger.close()
    expect(clock.timerCount).toBe(0)
  })
})
