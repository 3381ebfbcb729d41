// Messages are declared once; types, codec, WIRE.md and golden vectors are made from the
// declaration. Fields are only ever appended: an older peer skips what it doesn't know (the header
// says its length), a newer one gives a field that is missing its declared default.

import { assert } from '../common/assert.ts'
import type { FieldType } from './field-types.ts'
import type { HeaderReader } from './header-reader.ts'
import { headerLengthMax } from './limits.ts'

export type Direction = 'client-to-worker' | 'worker-to-client' | 'both'

/** `control`: a fresh array of at most 1 MiB. `data`: entries, received into pooled memory. */
export type BodyKind = 'none' | 'control' | 'data'

/**
 * Which channel numbers it may carry. `connection`: 0. `channel`: one that is open. `opens`: a new
 * one, higher than all before. `any`: 0 or a channel.
 */
export type ChannelUse = 'connection' | 'channel' | 'opens' | 'any'

export interface Field<T> {
  readonly type: FieldType<T>
  /** A sentence for WIRE.md. */
  readonly about: string
  /** The protocol version that appended the field. */
  readonly since: number
  /** The value when an older peer's header ends before the field; required when since > 1. */
  readonly absent?: T
}

export function field<T>(
  type: FieldType<T>,
  about: string,
  added?: { readonly since: number; readonly absent: T },
): Field<T> {
  return added === undefined ? { type, about, since: 1 } : { type, about, ...added }
}

export type Fields = Readonly<Record<string, Field<unknown>>>

export type FieldValues<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never
}

interface MessageFacts<Name extends string, F extends Fields, Body extends BodyKind> {
  readonly name: Name
  /** Number on the wire (u8). Frozen once released; a retired one is never used again. */
  readonly id: number
  readonly direction: Direction
  readonly channel: ChannelUse
  readonly body: Body
  /** What the body holds; empty for `none`. */
  readonly bodyAbout: string
  /** A sentence or two for WIRE.md. */
  readonly about: string
  readonly fields: F
}

export interface MessageDeclaration<
  Name extends string = string,
  F extends Fields = Fields,
  Body extends BodyKind = BodyKind,
> extends MessageFacts<Name, F, Body> {
  /** Bytes of the header with these values. */
  sizeOf(values: FieldValues<F>): number
  /** Writes the header at `offset`; returns the offset after it. */
  write(values: FieldValues<F>, target: Buffer, offset: number): number
  /** Reads what it knows; fields that a newer peer appended are left unread. */
  read(reader: HeaderReader): FieldValues<F>
}

/** Turns the facts into a declaration with its codec. */
export function defineMessage<
  const Name extends string,
  const F extends Fields,
  const Body extends BodyKind,
>(facts: MessageFacts<Name, F, Body>): MessageDeclaration<Name, F, Body> {
  const entries = Object.entries(facts.fields).map(([name, declared]) => ({ name, ...declared }))
  assertAppendOnly(facts.name, entries)
  assert((facts.body === 'none') === (facts.bodyAbout === ''), `${facts.name}: the body is told`)
  return {
    ...facts,
    sizeOf(values) {
      const record: Readonly<Record<string, unknown>> = values
      let size = 0
      for (const entry of entries) size += entry.type.sizeOf(record[entry.name])
      return size
    },
    write(values, target, offset) {
      const record: Readonly<Record<string, unknown>> = values
      let next = offset
      for (const entry of entries) next = entry.type.write(record[entry.name], target, next)
      assert(next - offset <= headerLengthMax, `${facts.name}: the header is within its limit`)
      return next
    },
    read(reader) {
      const values: Record<string, unknown> = {}
      for (const entry of entries) {
        reader.enter(entry.name)
        values[entry.name] =
          entry.since > 1 && reader.isAtEnd ? entry.absent : entry.type.read(reader)
      }
      return values as FieldValues<F>
    },
  }
}

function assertAppendOnly(message: string, fields: readonly Field<unknown>[]): void {
  let last = 1
  for (const declared of fields) {
    assert(declared.since >= last, `${message}: fields are appended, never inserted`)
    assert(declared.since === 1 || 'absent' in declared, `${message}: a later field has a default`)
    last = declared.since
  }
}
