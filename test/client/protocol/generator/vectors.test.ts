import { describe, expect, it } from 'vitest'
import { EntryChecksum } from '../../../../client/protocol/entry.ts'
import {
  entryExamples,
  exampleValues,
  frameBytes,
  messageVectors,
} from '../../../../client/protocol/generator/vectors.ts'
import { messageList, messages } from '../../../../client/protocol/messages.ts'

describe('vectors', () => {
  it('hold two of each message, and no more than JSON can', () => {
    const vectors = messageVectors()
    expect(JSON.parse(JSON.stringify(vectors))).toEqual(vectors)
    expect(vectors).toHaveLength(messageList.length)
  })

  it('have 64-bit values as strings', () => {
    const text = JSON.stringify(messageVectors())
    expect(text).toContain('"workerEpoch":"9007199254740991"')
    expect(text).toContain('"features":"18446744073709551615"')
    expect(text).toContain('"expectedBytes":null')
  })

  it('make frames from the examples of the fields', () => {
    const values = exampleValues(messages.Ping, 'largest')
    expect(frameBytes(messages.Ping, 0, values).toString('hex')).toBe(
      '0000000c' + '05' + '00' + '0004' + '00000000' + 'ffffffff',
    )
  })

  it('have entries whose checksums are right', () => {
    for (const entry of entryExamples) {
      expect(new EntryChecksum(entry.key).of(entry, entry.payload)).toBe(entry.checksum)
      expect(entry.bytes).toHaveLength(16 + entry.payload.length)
    }
  })
})
