import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { parseWorkerId } from '../../../client/common/ids.ts'
import {
  defineMessage,
  field,
  type MessageDeclaration,
} from '../../../client/protocol/define-message.ts'
import { uint32 } from '../../../client/protocol/field-types.ts'
import { FrameEncoder } from '../../../client/protocol/frame-encoder.ts'
import { helloFields } from '../../../client/protocol/handshake.ts'
import { messageList, messages, noRegion } from '../../../client/protocol/messages.ts'
import { byteByByte, whole } from './support/memory-connection.ts'
import { decodeNaively } from './support/naive-decoder.ts'
import {
  bareClient,
  clientHandshake,
  connectedPair,
  makePair,
  workerHandshake,
} from './support/recording-side.ts'
import { wireJsonFile } from './support/wire-json.ts'

const addCredit = { credit: 2, regionIndex: noRegion }
const openRead = { bufferSizeBytes: 32_768, initialCredit: 2 }

function frame(
  declaration: MessageDeclaration,
  channelId: number,
  values: Readonly<Record<string, unknown>>,
): Buffer {
  const encoder = new FrameEncoder()
  encoder.append(declaration, channelId, values)
  return Buffer.concat(encoder.take())
}

describe('ProtocolConnection: handshake', () => {
  it.each([
    ['whole', whole],
    ['byte by byte', byteByByte],
  ])('makes both sides ready with one session, arriving %s', async (_, split) => {
    const pair = makePair()
    pair.client.network.split = split
    pair.worker.network.split = split
    pair.worker.connection.start()
    pair.client.connection.start()
    await pair.clock.settle()
    const common = { version: 1, features: 0n, workerId: workerHandshake.workerId, workerEpoch: 42 }
    expect(pair.client.session).toMatchObject({ ...common, peerSoftware: 'test worker 2' })
    expect(pair.worker.session).toMatchObject({ ...common, peerSoftware: 'test client 1' })
    expect(pair.client.connection.session).toBe(pair.client.session)
    const names = decodeNaively(pair.worker.network.received).map(({ name }) => name)
    expect(names).toEqual(['Hello'])
  })

  it('answers a challenge with the shared token, which does not travel', async () => {
    const token = 'a secret of the cluster'
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, token } },
      worker: { handshake: { ...workerHandshake, token } },
    })
    expect(pair.client.session).toBeDefined()
    expect(pair.worker.session).toBeDefined()
    const { received } = pair.worker.network
    expect(decodeNaively(received).map(({ name }) => name)).toEqual(['Hello', 'Authenticate'])
    expect(received.includes(token)).toBe(false)
  })

  it.each([
    ['a wrong token', { client: 'wrong', worker: 'right' }, 'UNAUTHENTICATED'],
    ['no token', { client: undefined, worker: 'right' }, 'UNAUTHENTICATED'],
  ])('refuses %s by name, on both sides', async (_, tokens, code) => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, token: tokens.client } },
      worker: { handshake: { ...workerHandshake, token: tokens.worker } },
    })
    await pair.clock.advance(5_000)
    expect(pair.worker.session).toBeUndefined()
    expect(pair.client.closedBy).toMatchObject({ code })
    expect(pair.worker.closedBy).toMatchObject({ code })
    expect(pair.clock.timerCount).toBe(0)
  })

  it('needs no token where the worker wants none', async () => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, token: 'unused' } },
    })
    expect(pair.client.session).toBeDefined()
  })

  it('tells a client that another worker answers', async () => {
    const expectedWorkerId = parseWorkerId('worker-9')
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, expectedWorkerId } },
    })
    expect(pair.client.closedBy).toMatchObject({
      code: 'WORKER_CHANGED',
      fields: { wantedWorkerId: 'worker-9', workerId: 'worker-1', fromPeer: true },
    })
  })

  it('gives a handshake up that does not come to its end', async () => {
    const { clock, worker } = bareClient()
    await clock.advance(9_999)
    expect(worker.isClosed).toBe(false)
    await clock.advance(2)
    expect(worker.closedBy?.message).toContain('the handshake took more than 10000 ms')
    expect(clock.timerCount).toBe(0)
  })

  it('is an error when the stream ends before the handshake is done', async () => {
    const pair = makePair()
    pair.client.connection.start()
    pair.worker.network.destroy()
    await pair.clock.settle()
    expect(pair.client.closedBy).toMatchObject({ code: 'WORKER_UNREACHABLE' })
  })

  it('lets nobody send before it', () => {
    const { client } = makePair()
    client.connection.start()
    expect(() => {
      client.connection.send(messages.OpenRead, 1, openRead)
    }).toThrow('after the handshake')
  })

  it('takes channels in the very frames behind the handshake', async () => {
    const pair = makePair()
    pair.client.onReadyCall = () => {
      pair.client.connection.send(
        messages.OpenRead,
        pair.client.connection.nextChannelId(),
        openRead,
      )
    }
    pair.worker.connection.start()
    pair.client.connection.start()
    await pair.clock.settle()
    expect(pair.worker.messages).toEqual([{ name: 'OpenRead', fields: openRead }])
  })
})

describe('ProtocolConnection: other versions', () => {
  const versionsOf = (min: number, max: number) => ({ versions: { min, max } })

  it('speaks the highest version that both do', async () => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, ...versionsOf(1, 3) } },
      worker: { handshake: { ...workerHandshake, ...versionsOf(2, 9) } },
    })
    expect(pair.client.session?.version).toBe(3)
    expect(pair.worker.session?.version).toBe(3)
  })

  it.each([
    ['newer', versionsOf(7, 9)],
    ['older', versionsOf(0, 0)],
  ])('refuses a client that speaks only %s ones, by name', async (_, versions) => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, ...versions } },
    })
    for (const side of [pair.client, pair.worker]) {
      expect(side.closedBy).toMatchObject({ code: 'UNSUPPORTED_VERSION' })
      expect(side.closedBy?.message).toContain('no protocol version in common')
    }
  })

  it('uses the features that both have, and ignores the others', async () => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, features: 0b1110n | (1n << 63n) } },
      worker: { handshake: { ...workerHandshake, features: 0b0111n } },
    })
    expect(pair.client.session?.features).toBe(0b0110n)
    expect(pair.worker.session?.features).toBe(0b0110n)
  })

  // A version that doesn't exist: longer headers, one more message.
  const newerOpenRead = defineMessage({
    ...messages.OpenRead,
    fields: {
      ...messages.OpenRead.fields,
      priority: field(uint32, 'Made up.', { since: 2, absent: 5 }),
      weight: field(uint32, 'Made up too.', { since: 3, absent: 6 }),
    },
  })
  const Shine = defineMessage({
    name: 'Shine',
    id: 200,
    direction: 'both',
    channel: 'channel',
    body: 'control',
    bodyAbout: 'Made up.',
    about: 'Made up.',
    fields: { colour: field(uint32, 'Made up.') },
  })
  const newerList = [...messageList.filter(({ name }) => name !== 'OpenRead'), newerOpenRead, Shine]

  it('works with a newer client: longer headers and unknown messages are passed over', async () => {
    const pair = await connectedPair({
      client: { handshake: { ...clientHandshake, ...versionsOf(1, 3) }, declarations: newerList },
    })
    pair.worker.network.split = byteByByte
    const { connection } = pair.client
    connection.send(newerOpenRead, 1, { ...openRead, priority: 1, weight: 2 })
    connection.send(Shine, 1, { colour: 3 }, [new Uint8Array(500)])
    connection.send(messages.ReadEnd, 1, { partitionCount: 0 })
    await pair.clock.settle()
    expect(pair.worker.messages).toEqual([
      { name: 'OpenRead', fields: openRead },
      { name: 'ReadEnd', fields: { partitionCount: 0 } },
    ])
    expect(pair.worker.connection.skippedCount).toBe(1)
    expect(pair.worker.isClosed).toBe(false)
  })

  it('works with an older client: fields that it does not know have their declared values', async () => {
    const pair = await connectedPair({
      worker: { handshake: { ...workerHandshake, ...versionsOf(1, 3) }, declarations: newerList },
    })
    pair.client.connection.send(messages.OpenRead, 1, openRead)
    await pair.clock.settle()
    expect(pair.worker.messages).toEqual([
      { name: 'OpenRead', fields: { ...openRead, priority: 5, weight: 6 } },
    ])
  })

  it('works with a version in between, which knows one of two newer fields', async () => {
    const middle = defineMessage({
      ...messages.OpenRead,
      fields: {
        ...messages.OpenRead.fields,
        priority: field(uint32, 'Made up.', { since: 2, absent: 5 }),
      },
    })
    const pair = await connectedPair({ worker: { declarations: newerList } })
    pair.client.connection.send(middle, 1, { ...openRead, priority: 9 })
    await pair.clock.settle()
    expect(pair.worker.messages).toEqual([
      { name: 'OpenRead', fields: { ...openRead, priority: 9, weight: 6 } },
    ])
  })
})

describe('ProtocolConnection: streams of wire.json', () => {
  const rightHello = frame(messages.Hello, 0, { ...helloFields(clientHandshake, 10_000) })

  it.each(wireJsonFile.refused.streams)('refuses $about', async ({ phase, bytes, code }) => {
    for (const split of [whole, byteByByte]) {
      const { clock, stream, worker } = bareClient()
      worker.network.split = split
      if (phase === 'ready') worker.network.arrive(rightHello)
      worker.network.arrive(Buffer.from(bytes, 'hex'))
      await clock.advance(5_000)
      expect(worker.closedBy).toMatchObject({ code })
      const last = decodeNaively(stream.received).at(-1)
      expect(last).toMatchObject({ name: 'Error', channelId: 0 })
      expect(last?.fields['text']).toBe(worker.closedBy?.message)
      expect(worker.closedCount).toBe(1)
      expect(clock.timerCount).toBe(0)
    }
  })

  it.each(wireJsonFile.tolerated.streams)('takes $about', async (vector) => {
    for (const split of [whole, byteByByte]) {
      const { clock, worker } = bareClient()
      worker.network.split = split
      if (vector.phase === 'ready') worker.network.arrive(rightHello)
      worker.network.arrive(Buffer.from(vector.bytes, 'hex'))
      await clock.settle()
      expect(worker.messages.map(({ name }) => name)).toEqual(vector.messages)
      expect(worker.isClosed).toBe(false)
      worker.connection.destroy()
    }
  })
})

describe('ProtocolConnection: frames', () => {
  it('carries bodies into pooled memory, and tells when the system has taken them', async () => {
    const pair = await connectedPair()
    const body = Buffer.alloc(30_000, 'abc')
    const outcomes: unknown[] = []
    pair.client.connection.send(messages.WriteData, 1, { regionIndex: 3 }, [body], (error) => {
      outcomes.push(error)
    })
    expect(outcomes).toEqual([])
    await pair.clock.settle()
    expect(outcomes).toEqual([undefined])
    expect(pair.worker.data).toEqual([
      { message: { name: 'WriteData', fields: { regionIndex: 3 } }, channelId: 1, body },
    ])
    expect(pair.worker.buffersOut).toBe(0)
  })

  it('passes over data for which the handler has no buffer', async () => {
    const pair = await connectedPair()
    pair.worker.isGivingBuffers = false
    pair.client.connection.send(messages.WriteData, 1, { regionIndex: 0 }, [Buffer.alloc(100)])
    pair.client.connection.send(messages.CloseChannel, 1, { code: 0 })
    await pair.clock.settle()
    expect(pair.worker.data).toEqual([])
    expect(pair.worker.messages).toEqual([{ name: 'CloseChannel', fields: { code: 0 } }])
    expect(pair.worker.connection.skippedCount).toBe(1)
  })

  it('gathers the frames of one turn into one write', async () => {
    const pair = await connectedPair()
    const before = pair.client.network.writes.length
    for (let count = 0; count < 100; count += 1) {
      pair.client.connection.send(messages.AddCredit, 1, addCredit)
    }
    await pair.clock.settle()
    expect(pair.client.network.writes).toHaveLength(before + 1)
    expect(pair.worker.messages).toHaveLength(100)
  })

  it('is asked to wait above its bound, and told once when there is room', async () => {
    const pair = await connectedPair({ client: { queuedBytesBound: 100_000 } })
    pair.client.network.isTaking = false
    const body = Buffer.alloc(60_000)
    pair.client.connection.send(messages.WriteData, 1, { regionIndex: 0 }, [body])
    expect(pair.client.connection.isWritable).toBe(true)
    pair.client.connection.send(messages.WriteData, 1, { regionIndex: 0 }, [body])
    expect(pair.client.connection.isWritable).toBe(false)
    expect(pair.client.connection.queuedBytes).toBe(2 * (60_000 + 12 + 4))
    await pair.clock.settle()
    expect(pair.client.writableCount).toBe(0)
    pair.client.network.isTaking = true
    pair.client.network.take()
    await pair.clock.settle()
    expect(pair.client.connection.queuedBytes).toBe(0)
    expect(pair.client.writableCount).toBe(1)
    expect(pair.worker.data).toHaveLength(2)
  })

  it('hands out ascending channel numbers, and refuses others before they leave', async () => {
    const { client } = await connectedPair()
    expect([client.connection.nextChannelId(), client.connection.nextChannelId()]).toEqual([1, 2])
    client.connection.send(messages.OpenRead, 2, openRead)
    expect(() => {
      client.connection.send(messages.OpenRead, 1, openRead)
    }).toThrow('channel numbers ascend')
    expect(() => {
      client.connection.send(messages.ReadOpened, 2, {})
    }).toThrow('a client never sends ReadOpened')
    expect(client.connection.nextChannelId()).toBe(3)
  })

  it('disconnects a peer that asks and does not read', async () => {
    const { clock, worker } = bareClient()
    worker.network.isTaking = false
    worker.network.arrive(frame(messages.Hello, 0, { ...helloFields(clientHandshake, 10_000) }))
    const pings = Buffer.concat(
      Array.from({ length: 10_000 }, () => frame(messages.Ping, 0, { sequence: 1 })),
    )
    for (let count = 0; count < 60 && !worker.isClosed; count += 1) {
      worker.network.arrive(pings)
    }
    await clock.advance(5_000)
    expect(worker.closedBy).toMatchObject({ code: 'PROTOCOL' })
    expect(worker.closedBy?.message).toContain('does not read')
    expect(clock.timerCount).toBe(0)
  })
})

describe('ProtocolConnection: signs of life', () => {
  it('keeps a quiet connection alive by pings in both directions', async () => {
    const pair = await connectedPair({
      client: { pingIntervalMs: 1_000 },
      worker: { pingIntervalMs: 1_000 },
    })
    await pair.clock.advance(60_000)
    expect(pair.client.isClosed).toBe(false)
    expect(pair.worker.isClosed).toBe(false)
    const names = decodeNaively(pair.worker.network.received).map(({ name }) => name)
    expect(names).toContain('Ping')
    expect(names).toContain('Pong')
  })

  it('gives a silent peer up after three intervals', async () => {
    const { clock, worker } = bareClient({ pingIntervalMs: 1_000 })
    worker.network.arrive(frame(messages.Hello, 0, { ...helloFields(clientHandshake, 500) }))
    await clock.advance(2_999)
    expect(worker.isClosed).toBe(false)
    await clock.advance(1_001)
    expect(worker.closedBy?.message).toContain('nothing was heard from it for 3000 ms')
    expect(clock.timerCount).toBe(0)
  })

  it('gives up a peer that never ends a frame, though bytes of it come', async () => {
    const { clock, worker } = bareClient({ pingIntervalMs: 1_000 })
    worker.network.arrive(frame(messages.Hello, 0, { ...helloFields(clientHandshake, 500) }))
    const ping = frame(messages.Ping, 0, { sequence: 1 })
    worker.network.arrive(ping.subarray(0, 12))
    // A body that never ends would do the same; here a frame whose header comes too slowly.
    for (let second = 0; second < 32 && !worker.isClosed; second += 1) {
      if (second > 0 && second < 4) worker.network.arrive(ping.subarray(11 + second, 12 + second))
      if (second >= 4) worker.network.arrive(Buffer.alloc(0))
      await clock.advance(1_000)
    }
    expect(worker.closedBy?.message).toContain('a frame of it did not end')
    expect(clock.timerCount).toBe(0)
  })

  it('waits as long as the slower of both intervals says', async () => {
    const { clock, worker } = bareClient({ pingIntervalMs: 1_000 })
    worker.network.arrive(frame(messages.Hello, 0, { ...helloFields(clientHandshake, 5_000) }))
    await clock.advance(14_900)
    expect(worker.isClosed).toBe(false)
    await clock.advance(200)
    expect(worker.isClosed).toBe(true)
  })
})

describe('ProtocolConnection: ends', () => {
  it('sends what is queued, then ends in order on both sides', async () => {
    const pair = await connectedPair()
    const outcomes: unknown[] = []
    pair.worker.connection.send(messages.GoAway, 0, { reason: 'upgrade' }, undefined, (error) => {
      outcomes.push(error)
    })
    pair.worker.connection.close()
    pair.worker.connection.close()
    expect(pair.worker.isClosed).toBe(false)
    await pair.clock.advance(5_000)
    expect(outcomes).toEqual([undefined])
    expect(pair.client.messages.map(({ name }) => name)).toEqual(['GoAway'])
    for (const side of [pair.client, pair.worker]) {
      expect(side.closedCount).toBe(1)
      expect(side.closedBy).toBeUndefined()
    }
    expect(pair.clock.timerCount).toBe(0)
  })

  it('tells the other side why it closes', async () => {
    const pair = await connectedPair()
    pair.client.connection.close(
      new ShuffleError('LIMIT_EXCEEDED', 'too many channels', { fields: { channels: 9 } }),
    )
    await pair.clock.advance(5_000)
    expect(pair.client.closedBy).toMatchObject({ code: 'LIMIT_EXCEEDED' })
    expect(pair.worker.closedBy).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      message: 'too many channels',
      fields: { channels: 9, fromPeer: true },
    })
  })

  it('hands an error of one channel to its handler and lives on', async () => {
    const pair = await connectedPair()
    pair.worker.connection.send(messages.Error, 4, {
      code: 15,
      isRetryable: true,
      text: 'full',
      detail: '',
    })
    await pair.clock.settle()
    expect(pair.client.messages).toMatchObject([
      { name: 'Error', fields: { code: 15, text: 'full' } },
    ])
    expect(pair.client.isClosed).toBe(false)
  })

  it('calls every pending onWritten once, with the error, before onClosed', async () => {
    const pair = await connectedPair()
    pair.client.network.isTaking = false
    const outcomes: (string | undefined)[] = []
    for (let count = 0; count < 100; count += 1) {
      const body = [Buffer.alloc(60_000)]
      pair.client.connection.send(messages.WriteData, 1, { regionIndex: 0 }, body, (error) => {
        expect(pair.client.isClosed).toBe(false)
        outcomes.push(error?.message)
      })
    }
    await pair.clock.settle()
    expect(outcomes).toEqual([])
    pair.client.network.destroy(new Error('ECONNRESET'))
    await pair.clock.settle()
    expect(outcomes).toHaveLength(100)
    expect(outcomes.every((outcome) => outcome !== undefined)).toBe(true)
    expect(pair.client.closedBy).toMatchObject({ code: 'WORKER_UNREACHABLE' })
    expect(pair.client.connection.queuedBytes).toBe(0)
    expect(pair.clock.timerCount).toBe(0)
  })

  it('takes frames after its end for nothing, and says so', async () => {
    const pair = await connectedPair()
    pair.client.connection.destroy()
    const outcomes: unknown[] = []
    pair.client.connection.send(messages.AddCredit, 1, addCredit, undefined, (error) => {
      outcomes.push(error)
    })
    expect(outcomes).toEqual([])
    await pair.clock.settle()
    expect(outcomes).toMatchObject([{ code: 'WORKER_UNREACHABLE' }])
    expect(pair.client.closedCount).toBe(1)
  })

  it('recycles a body that is cut off, and says that the stream ended inside a frame', async () => {
    const pair = await connectedPair()
    const encoder = new FrameEncoder()
    encoder.append(messages.WriteData, 1, { regionIndex: 0 }, [Buffer.alloc(1_000)])
    pair.worker.network.arrive(Buffer.concat(encoder.take()).subarray(0, 500))
    expect(pair.worker.buffersOut).toBe(1)
    pair.worker.network.destroy()
    await pair.clock.settle()
    expect(pair.worker.buffersOut).toBe(0)
    expect(pair.worker.closedBy).toMatchObject({ code: 'WRITE_INTERRUPTED' })
    expect(pair.worker.closedBy?.message).toContain('inside a frame')
  })

  it('hears nothing more once the handler has closed it from within', async () => {
    const pair = await connectedPair()
    pair.worker.onEach = () => {
      pair.worker.connection.close()
    }
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    await pair.clock.advance(5_000)
    expect(pair.worker.messages).toHaveLength(1)
    expect(pair.worker.closedCount).toBe(1)
  })

  it('ends with the error that its handler throws', async () => {
    const pair = await connectedPair()
    pair.worker.onEach = () => {
      throw new ShuffleError('PROTOCOL', 'data beyond credit')
    }
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    await pair.clock.advance(5_000)
    expect(pair.client.closedBy).toMatchObject({ code: 'PROTOCOL', message: 'data beyond credit' })
  })

  it('ends without a word when its handler fails in a way that nobody declared', async () => {
    const pair = await connectedPair()
    const failure = new TypeError('a bug')
    pair.worker.onEach = () => {
      throw failure
    }
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    await pair.clock.settle()
    expect(pair.worker.closedBy).toMatchObject({ code: 'WRITE_INTERRUPTED', cause: failure })
    expect(pair.client.isClosed).toBe(true)
  })

  it('ends when its handler fails over room that it was told of', async () => {
    const pair = await connectedPair({ client: { queuedBytesBound: 10 } })
    const failure = new TypeError('a bug')
    pair.client.onWritableCall = () => {
      throw failure
    }
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    await pair.clock.settle()
    expect(pair.client.closedBy).toMatchObject({ code: 'WORKER_UNREACHABLE', cause: failure })
  })

  it('ends when a callback of a sent frame fails, and calls the others', async () => {
    const pair = await connectedPair()
    const failure = new TypeError('a bug')
    let others = 0
    pair.client.connection.send(messages.AddCredit, 1, addCredit, undefined, () => {
      throw failure
    })
    pair.client.connection.send(messages.AddCredit, 1, addCredit, undefined, () => {
      others += 1
    })
    await pair.clock.settle()
    expect(others).toBe(1)
    expect(pair.client.closedBy).toMatchObject({ cause: failure })
  })

  it('does not wait for ever for a peer that takes nothing', async () => {
    const pair = await connectedPair()
    pair.client.network.isTaking = false
    pair.client.connection.send(messages.AddCredit, 1, addCredit)
    pair.client.connection.close()
    await pair.clock.advance(4_999)
    expect(pair.client.isClosed).toBe(false)
    await pair.clock.advance(2)
    expect(pair.client.isClosed).toBe(true)
    expect(pair.clock.timerCount).toBe(0)
  })

  it('can be closed before it was started', async () => {
    const { clock, client } = makePair()
    client.connection.close()
    await clock.advance(5_000)
    expect(client.closedCount).toBe(1)
    expect(clock.timerCount).toBe(0)
  })
})

describe('ProtocolConnection: whatever happens', () => {
  type Side = 'client' | 'worker'
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        act: fc.constant('send' as const),
        side: fc.constantFrom<Side>('client', 'worker'),
        length: fc.nat(50_000),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        act: fc.constantFrom('hold' as const, 'take' as const),
        side: fc.constantFrom<Side>('client', 'worker'),
      }),
    },
    { weight: 3, arbitrary: fc.record({ act: fc.constant('wait' as const), ms: fc.nat(2_000) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        act: fc.constantFrom('close' as const, 'destroy' as const, 'reset' as const),
        side: fc.constantFrom<Side>('client', 'worker'),
      }),
    },
  )

  it('what arrives is what was sent, in order, up to the end; nothing is left', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 9_000 }),
        async (steps, pieceLength) => {
          const pair = await connectedPair({
            client: { pingIntervalMs: 500 },
            worker: { pingIntervalMs: 700 },
          })
          for (const side of [pair.client, pair.worker]) {
            side.network.split = (bytes) =>
              Array.from({ length: Math.ceil(bytes.length / pieceLength) }, (_, index) =>
                bytes.subarray(index * pieceLength, (index + 1) * pieceLength),
              )
          }
          const sent = { client: [] as Buffer[], worker: [] as Buffer[] }
          const written = { client: 0, worker: 0 }
          const act = async (each: (typeof steps)[number]) => {
            if (each.act === 'wait') {
              await pair.clock.advance(each.ms)
              return
            }
            const { connection, network } = pair[each.side]
            if (each.act === 'send') {
              const body = Buffer.alloc(each.length + 1, sent[each.side].length + 1)
              sent[each.side].push(body)
              const onWritten = () => {
                written[each.side] += 1
              }
              if (each.side === 'client')
                connection.send(messages.WriteData, 1, { regionIndex: 0 }, [body], onWritten)
              else connection.send(messages.ReadData, 1, {}, [body], onWritten)
            } else if (each.act === 'hold') network.isTaking = false
            else if (each.act === 'take') {
              network.isTaking = true
              network.take()
            } else if (each.act === 'reset') network.destroy(new Error('ECONNRESET'))
            else connection[each.act]()
          }
          for (const each of steps) await act(each)
          pair.client.connection.close()
          await pair.clock.advance(10_000)
          for (const [from, to] of [
            ['client', 'worker'],
            ['worker', 'client'],
          ] as const) {
            const received = pair[to].data.map(({ body }) => body)
            expect(received).toEqual(sent[from].slice(0, received.length))
            expect(written[from]).toBe(sent[from].length)
            expect(pair[to].closedCount).toBe(1)
            expect(pair[to].buffersOut).toBe(0)
            expect(pair[to].connection.queuedBytes).toBe(0)
          }
          expect(pair.clock.timerCount).toBe(0)
        },
      ),
      { numRuns: 40 },
    )
  })
})
