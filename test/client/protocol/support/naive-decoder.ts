// A second decoder, written from WIRE.md and not from the code: slow, whole streams only, driven by
// the released table of names and wire types. It judges the encoder.

import { readFileSync } from 'node:fs'

interface ReleasedMessage {
  readonly name: string
  readonly id: number
  readonly direction: string
  readonly channel: string
  readonly body: string
  readonly fields: readonly (readonly [string, string])[]
}

export interface Released {
  readonly version: number
  readonly messages: readonly ReleasedMessage[]
  readonly errorCodes: Readonly<Record<string, number>>
  readonly entryFlags: Readonly<Record<string, number>>
  readonly entryTypes: Readonly<Record<string, number>>
}

export const releasedVersion1 = JSON.parse(
  readFileSync(new URL('../released/version-1.json', import.meta.url), 'utf8'),
) as Released

export interface NaiveFrame {
  readonly name: string
  readonly channelId: number
  readonly fields: Readonly<Record<string, unknown>>
  readonly body: string
}

class Cursor {
  readonly #bytes: Uint8Array
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.at
  }

  number(byteCount: number): bigint {
    let value = 0n
    for (const byte of this.slice(byteCount)) value = value * 256n + BigInt(byte)
    return value
  }

  slice(byteCount: number): Uint8Array {
    if (this.left < byteCount) throw new Error('past the end')
    this.at += byteCount
    return this.#bytes.slice(this.at - byteCount, this.at)
  }
}

function string(cursor: Cursor): string {
  return new TextDecoder().decode(cursor.slice(Number(cursor.number(2))))
}

function value(cursor: Cursor, wireType: string): unknown {
  if (wireType.startsWith('u8(')) {
    const number = String(cursor.number(1))
    const named = wireType
      .slice(3, -1)
      .split(', ')
      .map((part) => part.split(' '))
    return named.find(([id]) => id === number)?.[1]
  }
  if (wireType.startsWith('text(') || wireType === 'id') return string(cursor)
  if (wireType === 'id?') return string(cursor) || null
  if (wireType.startsWith('bytes(')) {
    return Buffer.from(cursor.slice(Number(cursor.number(2)))).toString('hex')
  }
  switch (wireType) {
    case 'u16':
      return Number(cursor.number(2))
    case 'u32':
      return Number(cursor.number(4))
    case 'u64':
    case 'bits64':
      return String(cursor.number(8))
    case 'u64?': {
      const number = cursor.number(8)
      return number === 2n ** 64n - 1n ? null : String(number)
    }
    case 'bool':
      return cursor.number(1) === 1n
    case 'partitionKey':
      return {
        jobId: string(cursor),
        dataSetId: string(cursor),
        partitionIndex: Number(cursor.number(4)),
        attemptId: string(cursor),
      }
    case 'allocationId':
      return {
        managerEpoch: String(cursor.number(8)),
        jobEpoch: String(cursor.number(8)),
        sequence: String(cursor.number(8)),
      }
    default:
      throw new Error(`no such wire type: ${wireType}`)
  }
}

/** All frames of a whole stream. */
export function decodeNaively(stream: Uint8Array): NaiveFrame[] {
  const cursor = new Cursor(stream)
  const frames: NaiveFrame[] = []
  while (cursor.left > 0) {
    const frame = new Cursor(cursor.slice(Number(cursor.number(4))))
    const id = Number(frame.number(1))
    if (frame.number(1) !== 0n) throw new Error('flags are set')
    const headerLength = Number(frame.number(2))
    const channelId = Number(frame.number(4))
    const header = new Cursor(frame.slice(headerLength))
    const message = releasedVersion1.messages.find((candidate) => candidate.id === id)
    if (message === undefined) throw new Error(`no such message: ${String(id)}`)
    const fields = Object.fromEntries(
      message.fields.map(([name, wireType]) => [name, value(header, wireType)]),
    )
    if (header.left > 0) throw new Error(`${message.name}: bytes follow the last field`)
    const body = Buffer.from(frame.slice(frame.left)).toString('hex')
    frames.push({ name: message.name, channelId, fields, body })
  }
  return frames
}
