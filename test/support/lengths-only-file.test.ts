import { expect, it } from 'vitest'
import { LengthsOnlyFile } from './lengths-only-file.ts'
import { VirtualRandom } from './virtual-random.ts'

it('reads back what was written, headers and zeros alike, at any place', () => {
  const random = new VirtualRandom(7)
  const file = new LengthsOnlyFile()
  let all = Buffer.alloc(0)
  for (let round = 0; round < 50; round++) {
    const parts = Array.from({ length: 1 + random.integer(3) }, () => {
      const part = Buffer.alloc(random.integer(9000))
      for (let count = random.integer(4); count > 0 && part.length > 20; count--) {
        part.set(random.bytes(16), random.integer(part.length - 16))
      }
      return part
    })
    // Now and then the last bytes are written again, as when a block is filled up.
    const overlap = random.chance(0.3) ? Math.min(random.integer(100), all.length) : 0
    const again = all.subarray(all.length - overlap)
    file.write([again, ...parts], all.length - overlap)
    all = Buffer.concat([all.subarray(0, all.length - overlap), again, ...parts])
    expect(file.sizeBytes).toBe(all.length)
  }
  for (let round = 0; round < 200; round++) {
    const position = random.integer(all.length)
    const target = random.bytes(random.integer(20_000))
    const expected = all.subarray(position, position + target.length)
    expect(file.read(target, position)).toBe(expected.length)
    expect(Buffer.compare(target.subarray(0, expected.length), expected)).toBe(0)
  }
  file.truncate(1234)
  expect(Buffer.compare(Buffer.from(file.content()), all.subarray(0, 1234))).toBe(0)
})

it('refuses to write over what is not its end', () => {
  const file = new LengthsOnlyFile()
  file.write([Buffer.alloc(100)], 0)
  expect(() => {
    file.write([Buffer.alloc(10)], 0)
  }).toThrow('written at its end')
})
