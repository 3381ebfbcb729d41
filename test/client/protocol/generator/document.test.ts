import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { errorTable } from '../../../../client/common/errors.ts'
import { wireDocument } from '../../../../client/protocol/generator/document.ts'
import { limitTable } from '../../../../client/protocol/limits.ts'
import { messageList } from '../../../../client/protocol/messages.ts'

const template = readFileSync(
  new URL('../../../../client/protocol/generator/wire-template.md', import.meta.url),
  'utf8',
)

describe('wireDocument', () => {
  const document = wireDocument(template)

  it('names every message with each of its fields, every error code and every limit', () => {
    for (const { name, fields } of messageList) {
      const section = document.split(`\n### ${name}\n`)[1]?.split('\n### ')[0] ?? ''
      for (const [field, { type }] of Object.entries(fields)) {
        expect(section).toContain(`| ${field} | ${type.wireType} |`)
      }
    }
    for (const name of [...Object.keys(errorTable), ...Object.keys(limitTable)]) {
      expect(document).toContain(`| ${name} |`)
    }
  })

  it('explains the layout of every field type', () => {
    for (const { fields } of messageList) {
      for (const { type } of Object.values(fields)) expect(document).toContain(type.layout)
    }
  })

  it('leaves no placeholder, and knows each', () => {
    expect(document).not.toContain('{{')
    expect(() => wireDocument(`${template} {{weather}}`)).toThrow('unknown placeholder weather')
    expect(() => wireDocument('nothing')).toThrow('the template leaves out')
  })
})
