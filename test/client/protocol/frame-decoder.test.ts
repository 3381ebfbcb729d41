import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PooledBuffer } from '../../../client/common/buffer.ts'
import { type ShuffleError } from '../../../client/common/errors.ts'
import { FrameDecoder, type FrameHandler } from '../../../client/protocol/frame-decoder.ts'
import {
  entryExamples,
  exampleValues,
  frameBytes,
} from '../../../client/protocol/generator/vectors.ts'
import { messageList, messages } from '../../../client/protocol/messages.ts'
import { wireJsonFile } from './support/wire-json.ts'

interface Seen {
  readonly name: string
  readonly channelId: number
  readonly fields: unknown
  readonly body: string
}

class Recorder implements FrameHandler {
  readonly seen: Seen[] = []
  readonly admitted: (string | undefined)[] = []
  buffersOut = 0
  bufferLength = 1_048_576
  isSkipping = false
  onSeen: () => void = () => undefined

  admit(declaration: { readonly name: string } | undefined): void {
    this.admitted.push(declaration?.name)
  }

  bodyBuffer(): PooledBuffer | undefined {
    if (this.isSkipping) return undefined
    this.buffersOut += 1
    let isOut = true
    return {
      bytes: new Uint8Array(this.bufferLength).fill(0xaa),
      recycle: () => {
        if (!isOut) throw new Error('recycled twice')
        isOut = false
        this.buffersOut -= 1
      },
    }
  }

  onData: FrameHandler['onData'] = ({ name, fields }, channelId, buffer, bodyLength) => {
    const body = Buffer.from(buffer.bytes.subarray(0, bodyLength)).toString('hex')
    buffer.recycle()
    this.seen.push({ name, channelId, fields, body })
    this.onSeen()
  }

  onMessage: FrameHandler['onMessage'] = ({ name, fields }, channelId, body) => {
    this.seen.push({ name, channelId, fields, body: Buffer.from(body).toString('hex') })
    this.onSeen()
  }
}

function decode(pieces: readonly Buffer[]): Recorder {
  const recorder = new Recorder()
  const decoder = new FrameDecoder(recorder)
  for (const piece of pieces) {
    const view = new Uint8Array(piece)
    decoder.push(view)
    // The memory is the connection's own and is used again.
    view.fill(0xdb)
  }
  expect(decoder.isInsideFrame).toBe(false)
  expect(recorder.buffersOut).toBe(0)
  return recorder
}

/** Every message, with its smallest and its largest example. */
const allFrames = wireJsonFile.messages.flatMap(({ name, vectors }) =>
  vectors.map((vector) => {
    const declaration = messageList.find((candidate) => candidate.name === name)!
    return {
      bytes: Buffer.from(vector.frame, 'hex'),
      seen: {
        name,
        channelId: vector.channelId,
        fields: exampleValues(declaration, vector.example),
        body: vector.body,
      },
    }
  }),
)
const stream = Buffer.concat(allFrames.map(({ bytes }) => bytes))
const expected = allFrames.map(({ seen }) => seen)

function errorOf(action: () => void): ShuffleError {
  try {
    action()
  } catch (error) {
    return error as ShuffleError
  }
  throw new Error('nothing was thrown')
}

const body = entryExamples[1]!.bytes
const dataFrame = frameBytes(messages.WriteData, 3, { regionIndex: 1 }, body)
const controlFrame = frameBytes(messages.AddPartitions, 4, { partitionCount: 9 }, body)

describe('FrameDecoder', () => {
  it('reads every message from one piece', () => {
    expect(decode([stream]).seen).toEqual(expected)
  })

  it('reads every message byte by byte', () => {
    expect(decode(Array.from(stream, (byte) => Buffer.from([byte]))).seen).toEqual(expected)
  })

  it('reads two messages cut at each point', () => {
    const two = Buffer.concat([dataFrame, controlFrame])
    const seen = decode([two]).seen
    expect(seen.map(({ name }) => name)).toEqual(['WriteData', 'AddPartitions'])
    for (let cut = 0; cut <= two.length; cut += 1) {
      expect(decode([two.subarray(0, cut), two.subarray(cut)]).seen).toEqual(seen)
    }
  })

  it('reads every message from any pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 40 }), (cuts) => {
        const sorted = [0, ...cuts.sort((a, b) => a - b), stream.length]
        const pieces = sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end))
        expect(decode(pieces).seen).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })

  it('gives a message out with its last byte, not with the first of the next', () => {
    const recorder = new Recorder()
    const decoder = new FrameDecoder(recorder)
    decoder.push(frameBytes(messages.ReadOpened, 1, {}))
    expect(recorder.seen).toHaveLength(1)
    decoder.push(dataFrame)
    expect(recorder.seen).toHaveLength(2)
  })

  it('recycles a body that is partly received when the connection ends at any byte', () => {
    for (let cut = 0; cut < dataFrame.length; cut += 1) {
      const recorder = new Recorder()
      const decoder = new FrameDecoder(recorder)
      decoder.push(dataFrame.subarray(0, cut))
      expect(decoder.isInsideFrame).toBe(cut > 0)
      decoder.close()
      decoder.close()
      expect(recorder.buffersOut).toBe(0)
      decoder.push(dataFrame.subarray(cut))
      expect(recorder.seen).toEqual([])
    }
  })

  it('tells which frame is under way', () => {
    const decoder = new FrameDecoder(new Recorder())
    expect(decoder.frameUnderWay).toBeUndefined()
    for (const number of [1, 2]) {
      decoder.push(dataFrame.subarray(0, 3))
      expect(decoder.frameUnderWay).toBe(number)
      decoder.push(dataFrame.subarray(3, -1))
      expect(decoder.frameUnderWay).toBe(number)
      decoder.push(dataFrame.subarray(-1))
      expect(decoder.frameUnderWay).toBeUndefined()
    }
    decoder.close()
    expect(decoder.frameUnderWay).toBeUndefined()
  })

  it('stops at once when the handler closes it from within', () => {
    const recorder = new Recorder()
    const decoder = new FrameDecoder(recorder)
    recorder.onSeen = () => {
      decoder.close()
    }
    decoder.push(Buffer.concat([dataFrame, dataFrame]))
    expect(recorder.seen).toHaveLength(1)
    expect(recorder.buffersOut).toBe(0)
  })

  it('recycles a buffer that it got while it was being closed', () => {
    const recorder = new Recorder()
    const decoder = new FrameDecoder({
      admit: () => undefined,
      bodyBuffer: () => {
        decoder.close()
        return recorder.bodyBuffer()
      },
      onData: recorder.onData,
      onMessage: recorder.onMessage,
    })
    decoder.push(dataFrame)
    expect(recorder.buffersOut).toBe(0)
    expect(recorder.seen).toEqual([])
  })

  it('skips a data frame for which there is no buffer, at every split', () => {
    const two = Buffer.concat([dataFrame, controlFrame])
    for (let cut = 0; cut <= two.length; cut += 1) {
      const recorder = new Recorder()
      recorder.isSkipping = true
      const decoder = new FrameDecoder(recorder)
      decoder.push(two.subarray(0, cut))
      decoder.push(two.subarray(cut))
      expect(recorder.seen.map(({ name }) => name)).toEqual(['AddPartitions'])
      expect(decoder.skippedCount).toBe(1)
    }
  })

  it('skips exactly the length of an unknown type, and counts it', () => {
    const unknown = Buffer.from(controlFrame)
    unknown[4] = 250
    const empty = Buffer.from([0, 0, 0, 8, 251, 0, 0, 0, 0, 0, 0, 1])
    const bytes = Buffer.concat([unknown, empty, dataFrame, empty])
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const recorder = new Recorder()
      const decoder = new FrameDecoder(recorder)
      decoder.push(bytes.subarray(0, cut))
      decoder.push(bytes.subarray(cut))
      expect(recorder.seen.map(({ name }) => name)).toEqual(['WriteData'])
      expect(recorder.admitted).toEqual([undefined, undefined, 'WriteData', undefined])
      expect(decoder.skippedCount).toBe(3)
      expect(decoder.isInsideFrame).toBe(false)
    }
  })

  it('refuses a body larger than the buffer it got, and recycles it', () => {
    const recorder = new Recorder()
    recorder.bufferLength = body.length - 1
    const decoder = new FrameDecoder(recorder)
    const error = errorOf(() => {
      decoder.push(dataFrame)
    })
    expect(error).toMatchObject({
      code: 'PROTOCOL',
      fields: { message: 'WriteData', channelId: 3 },
    })
    expect(error.message).toContain('larger than the buffer')
    expect(recorder.buffersOut).toBe(0)
  })

  it('names what was wrong and where', () => {
    const broken = Buffer.from(
      frameBytes(messages.RegionStart, 8, exampleValues(messages.RegionStart, 'smallest')),
    )
    broken[16] = 2
    const decoder = new FrameDecoder(new Recorder())
    decoder.push(dataFrame)
    const error = errorOf(() => {
      decoder.push(broken)
    })
    expect(error.message).toBe('RegionStart: header field isBroadcast is 2, neither 0 nor 1')
    const body2 = Buffer.concat([frameBytes(messages.ReadOpened, 5, {}), Buffer.from([0])])
    body2.writeUInt32BE(9, 0)
    const decoder2 = new FrameDecoder(new Recorder())
    decoder2.push(dataFrame)
    expect(
      errorOf(() => {
        decoder2.push(body2)
      }).message,
    ).toBe(
      'frame 2 of the connection (ReadOpened, channel 5): it has a body of 1 bytes, but may have none',
    )
  })

  it('never throws anything but PROTOCOL, and never keeps a buffer, whatever comes', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 60 }),
            fc.nat(allFrames.length - 1).map((index) => allFrames[index]!.bytes),
            fc
              .record({ index: fc.nat(allFrames.length - 1), at: fc.nat(200), to: fc.nat(255) })
              .map(({ index, at, to }) => {
                const bytes = Buffer.from(allFrames[index]!.bytes)
                bytes[at % bytes.length] = to
                return bytes
              }),
          ),
          { maxLength: 12 },
        ),
        (pieces) => {
          const recorder = new Recorder()
          const decoder = new FrameDecoder(recorder)
          try {
            for (const piece of pieces) decoder.push(piece)
          } catch (error) {
            expect(error).toMatchObject({ name: 'ShuffleError', code: 'PROTOCOL' })
          }
          decoder.close()
          expect(recorder.buffersOut).toBe(0)
        },
      ),
      { numRuns: 300 },
    )
  })
})
