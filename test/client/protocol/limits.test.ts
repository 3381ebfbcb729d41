import { describe, expect, it } from 'vitest'
import { headerLengthMax, limitTable } from '../../../client/protocol/limits.ts'
import { messageList } from '../../../client/protocol/messages.ts'
import { exampleValues } from '../../../client/protocol/generator/vectors.ts'

describe('limits', () => {
  it('each have a reason', () => {
    for (const { value, reason } of Object.values(limitTable)) {
      expect(value).toBeGreaterThan(0)
      expect(reason).toMatch(/^[A-Z].*\.$/)
    }
  })

  it('leave room in a header for five times the longest of this version', () => {
    for (const declaration of messageList) {
      const size = declaration.sizeOf(exampleValues(declaration, 'largest'))
      expect(size * 5, declaration.name).toBeLessThanOrEqual(headerLengthMax)
    }
  })
})
