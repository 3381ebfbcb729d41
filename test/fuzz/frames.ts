// Frames as nobody should send them: any message, with fields by its examples, on any channel, with any
// body; some of them damaged, and bytes that are none at all.

import fc from 'fast-check'
import { FrameEncoder } from '../../client/protocol/frame-encoder.ts'
import { messageList } from '../../client/protocol/messages.ts'

export const frame: fc.Arbitrary<Uint8Array> = fc
  .record({
    declaration: fc.constantFrom(...messageList),
    picks: fc.array(fc.nat(3), { minLength: 16, maxLength: 16 }),
    channelId: fc.constantFrom(0, 1, 1, 1, 2, 2, 3, 7, 2 ** 32 - 1),
    body: fc.oneof(fc.constant(new Uint8Array(0)), fc.uint8Array({ maxLength: 100 })),
  })
  .map(({ declaration, picks, channelId, body }) => {
    const encoder = new FrameEncoder()
    encoder.append(declaration, channelId, fieldsOf(declaration.fields, picks), [body])
    return Buffer.concat(encoder.take())
  })

type DeclaredFields = (typeof messageList)[number]['fields']

/** The smallest values that the declaration gives as examples, now and then the largest. */
export function fieldsOf(declared: DeclaredFields, picks: readonly number[]): never {
  const fields: Record<string, unknown> = {}
  Object.entries(declared).forEach(([name, { type }], index) => {
    const { smallest, largest } = type.examples
    fields[name] = picks[index % picks.length] === 0 ? largest : smallest
  })
  return fields as never
}

const damaged = fc.tuple(frame, fc.nat(300), fc.nat(255)).map(([bytes, at, value]) => {
  const copy = Uint8Array.from(bytes)
  if (copy.length > 0) copy[at % copy.length] = value
  return copy
})

export const anyBytes: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 10, arbitrary: frame },
  { weight: 3, arbitrary: damaged },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
)
