import { describe, expect, it } from 'vitest'
import { type ErrorCode, errorTable, ShuffleError } from '../../../client/common/errors.ts'
import { errorOfWire, wireErrorFields } from '../../../client/protocol/wire-error.ts'

describe('wireErrorFields and errorOfWire', () => {
  it('carry every code, with its ids and figures', () => {
    for (const code of Object.keys(errorTable) as ErrorCode[]) {
      const error = new ShuffleError(code, `about ${code}`, {
        fields: { jobId: 'a', count: 3, isLast: true },
      })
      const fields = wireErrorFields(error)
      expect(fields).toMatchObject({
        code: errorTable[code].wireCode,
        isRetryable: errorTable[code].isRetryable,
      })
      expect(errorOfWire(fields)).toMatchObject({
        code,
        message: `about ${code}`,
        fields: { jobId: 'a', count: 3, isLast: true, fromPeer: true },
      })
    }
  })

  it('cut a text that is too long between characters, and leave out a detail that is', () => {
    const error = new ShuffleError('BUSY', `a${'é'.repeat(2_000)}`, {
      fields: { long: 'x'.repeat(3_000) },
    })
    const fields = wireErrorFields(error)
    expect(Buffer.byteLength(fields.text)).toBe(999)
    expect(fields.text).toBe(`a${'é'.repeat(499)}`)
    expect(fields.detail).toBe('')
  })

  it('take a code that this version does not know for PROTOCOL, and keep its number', () => {
    const error = errorOfWire({ code: 60_000, isRetryable: true, text: 'newer', detail: '' })
    expect(error).toMatchObject({ code: 'PROTOCOL', fields: { wireCode: 60_000 } })
  })

  it.each(['no JSON', '[1, 2', 'null', '7', '"text"', '{"nested":{"a":1},"list":[1]}'])(
    'read nothing out of the detail %s',
    (detail) => {
      const error = errorOfWire({ code: 13, isRetryable: true, text: 'busy', detail })
      expect(error.code).toBe('BUSY')
      expect(error.fields['nested']).toBeUndefined()
      expect(error.fields['list']).toBeUndefined()
    },
  )
})
