import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameEncoder } from '../../../client/protocol/frame-encoder.ts'
import { messageList, messages } from '../../../client/protocol/messages.ts'
import { exampleValues } from '../../../client/protocol/generator/vectors.ts'
import { decodeNaively } from './support/naive-decoder.ts'
import { wireJsonFile } from './support/wire-json.ts'

describe('FrameEncoder', () => {
  it('makes the golden vector of every message, as a naive decoder reads it', () => {
    for (const { name, vectors } of wireJsonFile.messages) {
      for (const vector of vectors) {
        const declaration = messageList.find((candidate) => candidate.name === name)!
        const encoder = new FrameEncoder()
        const values = exampleValues(declaration, vector.example)
        const body = Buffer.from(vector.body, 'hex')
        const bytes = encoder.append(declaration, vector.channelId, values, [body])
        const frame = Buffer.concat(encoder.take())
        expect(frame.length).toBe(bytes)
        expect(frame.toString('hex')).toBe(vector.frame)
        expect(decodeNaively(frame)).toEqual([
          { name, channelId: vector.channelId, fields: vector.fields, body: vector.body },
        ])
      }
    }
  })

  it('puts neighbouring headers into one part and leaves bodies where they are', () => {
    const encoder = new FrameEncoder()
    const body = [new Uint8Array([1, 2]), new Uint8Array(0), new Uint8Array([3])]
    encoder.append(messages.Ping, 0, { sequence: 1 })
    encoder.append(messages.Ping, 0, { sequence: 2 })
    encoder.append(messages.ReadData, 7, {}, body)
    encoder.append(messages.ReadFinish, 7, {
      partitionCount: 1,
      frameCount: 1,
      entryCount: 1,
      byteCount: 3,
    })
    const parts = encoder.take()
    expect(parts).toHaveLength(4)
    expect(parts[1]).toBe(body[0])
    expect(parts[2]).toBe(body[2])
    const frames = decodeNaively(Buffer.concat(parts))
    expect(frames.map(({ name }) => name)).toEqual(['Ping', 'Ping', 'ReadData', 'ReadFinish'])
    expect(frames[2]!.body).toBe('010203')
    expect(encoder.take()).toEqual([])
  })

  it('never changes what it has given away, over any number of frames', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ sequence: fc.nat(), take: fc.boolean(), text: fc.nat(1000) }), {
          minLength: 1,
          maxLength: 200,
        }),
        (steps) => {
          const encoder = new FrameEncoder()
          const taken: Uint8Array[] = []
          for (const { sequence, take, text } of steps) {
            encoder.append(messages.Ping, 0, { sequence })
            encoder.append(messages.GoAway, 0, { reason: 'x'.repeat(text) })
            if (take) taken.push(...encoder.take())
          }
          taken.push(...encoder.take())
          const frames = decodeNaively(Buffer.concat(taken))
          expect(frames.filter(({ name }) => name === 'Ping').map(({ fields }) => fields)).toEqual(
            steps.map(({ sequence }) => ({ sequence })),
          )
          expect(
            frames.filter(({ name }) => name === 'GoAway').map(({ fields }) => fields),
          ).toEqual(steps.map(({ text }) => ({ reason: 'x'.repeat(text) })))
        },
      ),
      { numRuns: 30 },
    )
  })

  it('refuses values that their field cannot hold', () => {
    const encoder = new FrameEncoder()
    expect(() => encoder.append(messages.Ping, 0, { sequence: -1 })).toThrow('a field of at most')
    expect(() => encoder.append(messages.Ping, 0, { sequence: 2 ** 32 })).toThrow(
      'a field of at most',
    )
    expect(() => encoder.append(messages.GoAway, 0, { reason: 'x'.repeat(1001) })).toThrow(
      'a field of at most',
    )
  })
})
