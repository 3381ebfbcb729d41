import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameEncoder } from '../../client/protocol/frame-encoder.ts'
import { messages, protocolMagic, protocolVersions } from '../../client/protocol/messages.ts'
import type { Connection } from '../../client/common/network.ts'
import { dataPort, WorkerBench } from '../shuffle-worker/support/worker-bench.ts'
import { fuzzBudget } from './budget.ts'
import { anyBytes } from './frames.ts'

const conversation = fc.record({
  isIntroduced: fc.boolean(),
  sent: fc.array(anyBytes, { minLength: 1, maxLength: 30 }),
  isCut: fc.boolean(),
})

/** Hello and what follows it, of a peer that the worker takes for one of its own. */
function introduction(): Uint8Array {
  const encoder = new FrameEncoder()
  encoder.append(messages.Hello, 0, {
    magic: protocolMagic,
    versionMin: protocolVersions.min,
    versionMax: protocolVersions.max,
    features: 0n,
    clusterId: undefined,
    expectedWorkerId: undefined,
    heartbeatIntervalMs: 10_000,
    software: 'fuzz',
  })
  const { mechanism, answer } = messages.Authenticate.fields
  encoder.append(messages.Authenticate, 0, {
    mechanism: mechanism.type.examples.smallest,
    answer: answer.type.examples.smallest,
  })
  return Buffer.concat(encoder.take())
}

test('a peer that sends anything costs its own connection only', async () => {
  const bench = await WorkerBench.start()
  const good = await bench.connect()
  let number = 0
  await fc.assert(
    fc.asyncProperty(conversation, async ({ isIntroduced, sent, isCut }) => {
      number += 1
      const connection: Connection = await bench.world.drive(
        bench.clientProcess.network.connect({ host: 'worker', port: dataPort, timeoutMs: 1000 }),
      )
      let isClosed = false
      connection.start({
        onBytes: () => undefined,
        onDrain: () => undefined,
        onClose: () => {
          isClosed = true
        },
      })
      if (isIntroduced) connection.write([introduction()])
      for (const bytes of sent) connection.write([bytes])
      await bench.world.clock.advance(20)
      const key = bench.key(number)
      const channelId = await bench.write(good, key, [
        { isBroadcast: false, runs: [[Buffer.from('still')], [], [Buffer.from('served')], []] },
      ])
      expect(good.errorOf(channelId)).toBeUndefined()
      expect(good.first(channelId, 'WriteCommitted')).toBeDefined()
      if (isCut) connection.destroy()
      else connection.end()
      await bench.until(() => isClosed)
      bench.worker.store.release([key])
      await bench.world.clock.advance(200)
      bench.worker.store.confirmReleased([key])
      await bench.expectNothingHeld()
    }),
    fuzzBudget(),
  )
  expect(number).toBeGreaterThan(0)
  expect(good.isClosed).toBe(false)
  await bench.world.clock.drive(bench.worker.stop())
})
