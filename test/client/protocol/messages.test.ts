import { describe, expect, it } from 'vitest'
import { errorTable } from '../../../client/common/errors.ts'
import { entryFlags, entryTypes } from '../../../client/protocol/entry.ts'
import { messageList, messages, reservedMessageIds } from '../../../client/protocol/messages.ts'
import { releasedVersion1 } from './support/naive-decoder.ts'

describe('messages', () => {
  it('have names and ids of their own', () => {
    expect(new Set(messageList.map(({ id }) => id)).size).toBe(messageList.length)
    expect(Object.entries(messages).map(([name]) => name)).toEqual(
      messageList.map(({ name }) => name),
    )
    for (const { id } of messageList) {
      expect(id).toBeGreaterThan(0)
      expect(id).toBeLessThan(256)
      expect(reservedMessageIds[id]).toBeUndefined()
    }
  })

  it('keep everything that version 1 released: numbers are frozen, fields only appended', () => {
    for (const released of releasedVersion1.messages) {
      const declaration = messageList.find(({ name }) => name === released.name)
      expect(declaration).toMatchObject({
        id: released.id,
        direction: released.direction,
        channel: released.channel,
        body: released.body,
      })
      const fields = Object.entries(declaration!.fields)
      expect(
        fields
          .slice(0, released.fields.length)
          .map(([name, { type, since }]) => [name, type.wireType, since]),
      ).toEqual(released.fields.map(([name, wireType]) => [name, wireType, 1]))
      for (const [name, field] of fields.slice(released.fields.length)) {
        expect(field.since, `${released.name}.${name} was added later`).toBeGreaterThan(1)
      }
    }
    expect(errorCodesOf()).toMatchObject(releasedVersion1.errorCodes)
    expect(entryFlags).toMatchObject(releasedVersion1.entryFlags)
    expect(entryTypes).toMatchObject(releasedVersion1.entryTypes)
  })

  it('say in a sentence what they and their fields are', () => {
    for (const { about, bodyAbout, body, fields } of messageList) {
      for (const sentence of [about, ...Object.values(fields).map((field) => field.about)]) {
        expect(sentence).toMatch(/^\S[^]*[^\s]$/)
        expect(sentence).toMatch(/[.;]/)
      }
      expect(bodyAbout === '').toBe(body === 'none')
    }
  })
})

function errorCodesOf(): Record<string, number> {
  return Object.fromEntries(
    Object.entries(errorTable).map(([name, { wireCode }]) => [name, wireCode]),
  )
}
