import { expect, test } from 'vitest'
import { SharedBody } from '../../../client/read/shared-body.ts'

test('the buffer goes back when the last holder lets go, once', () => {
  let recycled = 0
  const body = new SharedBody({
    bytes: new Uint8Array(8),
    recycle: () => {
      recycled += 1
    },
  })
  body.retain()
  body.retain()
  body.release()
  body.release()
  expect(recycled).toBe(0)
  body.release()
  expect(recycled).toBe(1)
  expect(() => {
    body.release()
  }).toThrow(/as often/)
  expect(() => {
    body.retain()
  }).toThrow(/not held again/)
})
