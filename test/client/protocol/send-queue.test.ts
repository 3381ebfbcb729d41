import { describe, expect, it } from 'vitest'
import { messages } from '../../../client/protocol/messages.ts'
import { SendQueue } from '../../../client/protocol/send-queue.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { memoryPair } from './support/memory-connection.ts'
import { decodeNaively } from './support/naive-decoder.ts'

function makeQueue() {
  const clock = new VirtualClock()
  const [near, far] = memoryPair(clock)
  const seen = { taken: 0, failures: [] as unknown[], outcomes: [] as (Error | undefined)[] }
  const queue = new SendQueue({
    connection: near,
    clock,
    onTaken: () => {
      seen.taken += 1
    },
    onFailure: (error) => {
      seen.failures.push(error)
    },
  })
  const sendData = (length: number) => {
    queue.append(messages.WriteData, 1, { regionIndex: 0 }, [Buffer.alloc(length)], (error) => {
      seen.outcomes.push(error)
    })
  }
  return { clock, near, far, queue, seen, sendData }
}

const mebibyte = 1_048_576

describe('SendQueue', () => {
  it('writes the frames of one turn together, and not before the turn is over', async () => {
    const { clock, near, far, queue, sendData } = makeQueue()
    sendData(100)
    sendData(200)
    expect(near.writes).toEqual([])
    const bytes = queue.queuedBytes
    await clock.settle()
    expect(near.writes).toEqual([bytes])
    expect(decodeNaively(far.received)).toHaveLength(2)
    expect(queue.queuedBytes).toBe(0)
  })

  it('writes at once when a mebibyte is there', () => {
    const { near, sendData } = makeQueue()
    sendData(mebibyte)
    expect(near.writes).toHaveLength(1)
  })

  it('keeps two writes of about a mebibyte in flight, and the rest in order behind them', async () => {
    const { clock, near, far, seen, sendData } = makeQueue()
    near.isTaking = false
    for (let count = 0; count < 100; count += 1) sendData(65_536)
    await clock.settle()
    expect(near.writes).toHaveLength(2)
    expect(seen.outcomes).toEqual([])
    near.isTaking = true
    near.take()
    await clock.settle()
    expect(seen.outcomes).toEqual(Array.from({ length: 100 }, () => undefined))
    expect(Math.max(...near.writes)).toBeLessThan(mebibyte + 70_000)
    expect(decodeNaively(far.received)).toHaveLength(100)
    expect(seen.taken).toBe(near.writes.length)
  })

  it('hands everything over on flush, whatever is in flight', async () => {
    const { clock, near, far, queue, sendData } = makeQueue()
    near.isTaking = false
    for (let count = 0; count < 50; count += 1) sendData(65_536)
    queue.flush()
    near.end()
    near.isTaking = true
    await clock.settle()
    expect(decodeNaively(far.received)).toHaveLength(50)
  })

  it('settles all that is pending once when the connection has ended', async () => {
    const { clock, near, queue, seen, sendData } = makeQueue()
    near.isTaking = false
    for (let count = 0; count < 50; count += 1) sendData(65_536)
    const error = new Error('gone')
    queue.fail(error)
    expect(seen.outcomes).toEqual(Array.from({ length: 50 }, () => error))
    near.destroy()
    await clock.settle()
    expect(seen.outcomes).toHaveLength(50)
    expect(queue.queuedBytes).toBe(0)
    expect(clock.eventCount).toBe(0)
  })

  it('reports a callback that throws and calls the others', async () => {
    const { clock, queue, seen, sendData } = makeQueue()
    const failure = new Error('a bug')
    queue.append(messages.Ping, 0, { sequence: 1 }, undefined, () => {
      throw failure
    })
    sendData(1)
    await clock.settle()
    expect(seen.failures).toEqual([failure])
    expect(seen.outcomes).toEqual([undefined])
  })

  it('is overrun by answers that nobody reads, never by data, lists or pages', async () => {
    const { clock, near, queue, sendData } = makeQueue()
    near.isTaking = false
    const page = { regionCount: 0, byteCount: 0, recordCount: 0, firstSubpartition: 0 }
    const body = [Buffer.alloc(mebibyte)]
    for (let count = 0; count < 9; count += 1) {
      sendData(mebibyte)
      queue.append(messages.WriteFinish, 1, { ...page, isLast: false }, body, undefined)
    }
    expect(queue.isOverrun).toBe(false)
    for (let count = 0; count < 600_000 && !queue.isOverrun; count += 1) {
      queue.append(messages.Ping, 0, { sequence: 1 }, undefined, undefined)
    }
    expect(queue.isOverrun).toBe(true)
    near.isTaking = true
    near.take()
    await clock.settle()
    expect(queue.isOverrun).toBe(false)
  })
})
