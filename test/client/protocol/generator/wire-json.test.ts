import { describe, expect, it } from 'vitest'
import { wireJson } from '../../../../client/protocol/generator/wire-json.ts'

describe('wireJson', () => {
  it('is JSON whose first line is the notice', () => {
    const text = wireJson('made by "a test"')
    expect(text.split('\n')[0]).toBe('{ "//": "made by \\"a test\\"",')
    expect(JSON.parse(text)).toMatchObject({
      '//': 'made by "a test"',
      versions: { min: 1, max: 1 },
    })
  })

  it('is the same each time', () => {
    expect(wireJson('x')).toBe(wireJson('x'))
  })
})
