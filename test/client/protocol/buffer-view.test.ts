import { expect, it } from 'vitest'
import { bufferView } from '../../../client/protocol/buffer-view.ts'

it('bufferView is a Buffer over the same memory', () => {
  const memory = new Uint8Array([1, 2, 3, 4])
  const view = bufferView(memory.subarray(1, 3))
  view[0] = 9
  expect(memory[1]).toBe(9)
  expect(view).toHaveLength(2)
  expect(bufferView(view)).toBe(view)
})
