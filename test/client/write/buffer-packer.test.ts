import { describe, expect, test } from 'vitest'
import { BufferPool } from '../../../client/common/buffer-pool.ts'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { TimeInState } from '../../../client/common/time-in-state.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import {
  broadcastSubpartition,
  EntryChecksum,
  entryPayloadMax,
} from '../../../client/protocol/entry.ts'
import { BufferPacker, compressedBytesMin } from '../../../client/write/buffer-packer.ts'
import { recordPieces, type PieceSource } from '../../../client/write/region-pieces.ts'
import type { WriteChannel, WriteState } from '../../../client/write/write-channel.ts'
import { entriesOf } from '../support/fake-worker.ts'
import { jobId } from '../support/client-bench.ts'
import { parseAttemptId, parseDataSetId } from '../../../client/common/ids.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const bufferSizeBytes = 4096

function setUp(options: { isCompressed?: boolean; failSend?: boolean } = {}) {
  const world = new VirtualWorld()
  const { clock, compute } = world.main
  const waiters = new WaiterRegister({ clock })
  const pool = new BufferPool({ bufferSizeBytes, bufferCount: 3, waiters })
  const scratchPool = new BufferPool({ bufferSizeBytes, bufferCount: 3, waiters })
  const sent: Uint8Array[] = []
  const calls: string[] = []
  // The packer needs three methods of the channel.
  const channel: Pick<WriteChannel, 'startRegion' | 'send' | 'finishRegion'> = {
    startRegion: () => {
      calls.push('start')
      return Promise.resolve()
    },
    send: (buffer: PooledBuffer, length: number) => {
      sent.push(buffer.bytes.slice(0, length))
      buffer.recycle()
      return options.failSend === true ? Promise.reject(new Error('lost')) : undefined
    },
    finishRegion: () => {
      calls.push('finish')
    },
  }
  const packer = new BufferPacker({
    pool,
    scratchPool,
    channel: channel as WriteChannel,
    compute,
    checksum: new EntryChecksum({
      jobId,
      dataSetId: parseDataSetId('s'),
      partitionIndex: 0,
      attemptId: parseAttemptId('a'),
    }),
    isCompressed: options.isCompressed ?? true,
    parallelism: 3,
    subpartitionCount: 4,
    timeInState: new TimeInState<WriteState>(clock, [
      'idle',
      'compression',
      'credit',
      'socket',
      'commit',
    ]),
    signal: new AbortController().signal,
    bufferTimeoutMs: 1000,
    fields: {},
  })
  return { world, pool, scratchPool, sent, calls, packer }
}

function pieceOf(subpartition: number, bytes: Uint8Array, isLastOfRun = true) {
  return {
    subpartition,
    type: 0,
    length: bytes.length,
    isLastOfRun,
    fill: (target: Uint8Array) => {
      target.set(bytes)
    },
  }
}

function sourceOf(pieces: ReturnType<typeof pieceOf>[], isBroadcast = false): PieceSource {
  return { isBroadcast, boundBytes: 1_000_000, pieces: () => pieces }
}

describe('the buffer packer', () => {
  test('packs small entries of many subpartitions into one body', async () => {
    const { world, pool, scratchPool, sent, calls, packer } = setUp()
    const pieces = [0, 1, 2, 3].map((subpartition) => pieceOf(subpartition, Buffer.alloc(200, 65)))
    await world.drive(packer.sendRegion(sourceOf(pieces)))
    expect(calls).toEqual(['start', 'finish'])
    expect(sent).toHaveLength(1)
    expect(entriesOf(sent[0] ?? Buffer.alloc(0)).map(({ subpartition }) => subpartition)).toEqual([
      0, 1, 2, 3,
    ])
    expect(pool.usedCount + scratchPool.usedCount).toBe(0)
  })

  test('keeps the order of pieces whatever order their compression ends in', async () => {
    const { world, sent, packer } = setUp()
    const pieces = Array.from({ length: 60 }, (_, index) => {
      const length = index % 3 === 0 ? 50 : compressedBytesMin + index
      return pieceOf(index >> 4, Buffer.alloc(length, index), index % 16 === 15)
    })
    await world.drive(packer.sendRegion(sourceOf(pieces)))
    const entries = sent.flatMap((body) => entriesOf(body))
    expect(entries.map(({ subpartition }) => subpartition)).toEqual(
      pieces.map(({ subpartition }) => subpartition),
    )
    for (const body of sent) expect(body.length).toBeLessThanOrEqual(bufferSizeBytes)
  })

  test('an entry of the largest payload that nothing compresses fills a body alone', async () => {
    const { world, sent, packer } = setUp()
    const random = world.random.bytes(entryPayloadMax(bufferSizeBytes))
    await world.drive(packer.sendRegion(sourceOf([pieceOf(0, random), pieceOf(1, random)])))
    expect(sent.map(({ length }) => length)).toEqual([random.length + 16, random.length + 16])
  })

  test('counts uncompressed bytes by subpartition, broadcast ones for each', async () => {
    const { world, packer } = setUp()
    await world.drive(packer.sendRegion(sourceOf([pieceOf(1, Buffer.alloc(2000))])))
    await world.drive(packer.sendRegion(sourceOf([pieceOf(0, Buffer.alloc(30))], true)))
    expect([...packer.bytesBySubpartition()]).toEqual([30, 2030, 30, 30])
    expect(packer.uncompressedBytes).toBe(2030)
    expect(packer.regionCount).toBe(2)
  })

  test('broadcast entries carry the broadcast mark', async () => {
    const { world, sent, packer } = setUp()
    const place = { subpartition: 0, isBroadcast: true }
    const source = recordPieces(Buffer.alloc(9000), place, entryPayloadMax(bufferSizeBytes))
    await world.drive(packer.sendRegion(source))
    const entries = sent.flatMap((body) => entriesOf(body))
    expect(entries.length).toBe(3)
    for (const { subpartition } of entries) expect(subpartition).toBe(broadcastSubpartition)
    expect(entries.map(({ isLastOfRun }) => isLastOfRun)).toEqual([false, false, true])
  })

  test('a send that fails gives back what is in work, when the other threads are done', async () => {
    const { world, pool, scratchPool, packer } = setUp({ failSend: true })
    const pieces = Array.from({ length: 40 }, () => pieceOf(0, world.random.bytes(3000), false))
    await expect(world.drive(packer.sendRegion(sourceOf(pieces)))).rejects.toThrow('lost')
    await world.clock.advance(100)
    expect(pool.usedCount + scratchPool.usedCount).toBe(0)
  })

  test('a source that fails gives everything back too', async () => {
    const { world, pool, scratchPool, calls, packer } = setUp()
    const source = sourceOf([])
    const failing: PieceSource = {
      ...source,
      *pieces() {
        yield pieceOf(0, Buffer.alloc(2000))
        throw new Error('broken')
      },
    }
    await expect(world.drive(packer.sendRegion(failing))).rejects.toThrow('broken')
    await world.clock.advance(100)
    expect(pool.usedCount + scratchPool.usedCount).toBe(0)
    expect(calls).toEqual(['start'])
  })
})
