import { describe, expect, test } from 'vitest'
import {
  ClientBench,
  descriptorOf,
  emitText,
  readAll,
  wholeInput,
} from '../support/client-bench.ts'

describe('an input gate', () => {
  test('hands out every record of every subpartition, in the order of its emission', async () => {
    const bench = new ClientBench()
    const worker = await bench.startWorker('w1')
    const descriptor = descriptorOf(worker)
    const totals = await bench.drive(
      bench.write(descriptor, async (partition) => {
        for (let index = 0; index < 1000; index += 1) {
          await emitText(partition, index % 4, `record ${String(index)}`)
        }
      }),
    )
    expect(totals.recordCount).toBe(1000)
    const gate = bench.createGate([wholeInput(descriptor)])
    const received = await bench.drive(readAll(gate))
    for (let subpartition = 0; subpartition < 4; subpartition += 1) {
      const expected = Array.from(
        { length: 250 },
        (_, index) => `record ${String(index * 4 + subpartition)}`,
      )
      expect(received.get(`0/${String(subpartition)}`)).toEqual(expected)
    }
    await bench.atRest([worker])
  })
})
