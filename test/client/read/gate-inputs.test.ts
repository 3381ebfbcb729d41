import { describe, expect, test } from 'vitest'
import { checkInputs } from '../../../client/read/gate-inputs.ts'
import { ClientBench, descriptorOf, wholeInput } from '../support/client-bench.ts'

const bench = new ClientBench()
const worker = await bench.startWorker('w1')
const descriptor = descriptorOf(worker)

describe('the inputs of a gate', () => {
  test('have the largest of their buffer sizes', () => {
    const larger = descriptorOf(worker, { bufferSizeBytes: 4096 })
    expect(checkInputs([wholeInput(descriptor), wholeInput(larger)], 16_384)).toBe(4096)
    expect(checkInputs([], 0)).toBe(32_768)
  })

  test('need memory for four buffers', () => {
    expect(checkInputs([wholeInput(descriptor)], 4096)).toBe(1024)
    expect(() => checkInputs([wholeInput(descriptor)], 4095)).toThrow(/needs 4096 bytes/)
  })

  test('that cannot be read are refused', () => {
    const cases = [
      wholeInput(descriptor, { firstSubpartition: 3, lastSubpartition: 2 }),
      wholeInput(descriptor, { lastSubpartition: 4 }),
      wholeInput(descriptor, { firstSubpartition: -1 }),
      wholeInput({ ...descriptor, holders: [] }),
    ]
    for (const input of cases) expect(() => checkInputs([input], 65_536)).toThrow(/cannot read/)
    expect(() => checkInputs([wholeInput(descriptor)], 65_536, 512)).toThrow(/1024 bytes/)
    expect(() => checkInputs([wholeInput({ ...descriptor, codec: 'zstd' })], 65_536)).toThrow(
      /not zstd/,
    )
  })
})
