import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isShuffleError } from '../../client/common/errors.ts'
import { parseWorkerId } from '../../client/common/ids.ts'
import type { Connection } from '../../client/common/network.ts'
import type { ShuffleDescriptor } from '../../client/master/shuffle-descriptor.ts'
import { FrameEncoder } from '../../client/protocol/frame-encoder.ts'
import {
  messageList,
  messages,
  protocolMagic,
  protocolVersions,
} from '../../client/protocol/messages.ts'
import type { InputGate } from '../../client/read/input-gate.ts'
import {
  ClientBench,
  descriptorOf,
  emitText,
  readAll,
  wholeInput,
  type Received,
} from '../client/support/client-bench.ts'
import { clusterId, type FakeConnection, type FakeWorker } from '../client/support/fake-worker.ts'
import { fuzzBudget } from './budget.ts'
import { anyBytes, fieldsOf } from './frames.ts'

const soon = 2_000
const settings = {
  connectTimeoutMs: soon,
  writeOpenTimeoutMs: soon,
  regionTimeoutMs: soon,
  commitTimeoutMs: soon,
  readUnreachableTimeoutMs: soon,
  readIdleTimeoutMs: soon,
  readRetryTimeoutMs: soon,
  pingIntervalMs: soon,
}
const recordCount = 200

function textOf(index: number): string {
  return `${String(index)} `.repeat(1 + ((index * 37) % 60))
}

async function emitSome(partition: Parameters<typeof emitText>[0]): Promise<void> {
  for (let index = 0; index < recordCount; index += 1) {
    await emitText(partition, index % 4, textOf(index))
  }
}

/** What the client's own code may end with. */
async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (!isShuffleError(error)) throw error
    return error.code
  }
}

/** Reads on until each input is finished or failed. */
async function readOn(gate: InputGate): Promise<Received> {
  const received: Received = new Map()
  const told = new Set<unknown>()
  for (;;) {
    try {
      await readAll(gate, received)
      return received
    } catch (error) {
      if (!isShuffleError(error)) throw error
      if (told.has(error)) return received
      told.add(error)
    }
  }
}

/** A client writes to and reads from the bad worker while it does the same with a good one. */
async function expectOnlyItsOwn(
  bench: ClientBench,
  good: FakeWorker,
  bad: { readonly written: ShuffleDescriptor; readonly read: ShuffleDescriptor },
): Promise<void> {
  const goodOne = descriptorOf(good, { partitionIndex: 0 })
  await bench.drive(bench.write(goodOne, emitSome))
  const abandoned = bench.createPartition(bad.written)
  const gate = bench.createGate([wholeInput(goodOne), wholeInput(bad.read)])
  const [written, received] = await bench.drive(
    Promise.all([
      outcomeOf(emitSome(abandoned).then(() => abandoned.finish())),
      readOn(gate),
      bench.write(descriptorOf(good, { partitionIndex: 1 }), emitSome),
    ]),
    3_600_000,
  )
  if (written !== 'done') abandoned.abort()
  await bench.drive(gate.close())
  for (let subpartition = 0; subpartition < 4; subpartition += 1) {
    const all = Array.from({ length: recordCount / 4 }, (_, index) =>
      textOf(index * 4 + subpartition),
    )
    expect(received.get(`0/${String(subpartition)}`)).toEqual(all)
    // Of the bad one's a part at most, the first ones, in order.
    const some = received.get(`1/${String(subpartition)}`) ?? []
    expect(some).toEqual(all.slice(0, some.length))
  }
  await bench.atRest([good])
}

/** HelloAck, as a worker without a token gives it. */
function introduction(workerId: string): Uint8Array {
  const encoder = new FrameEncoder()
  encoder.append(messages.HelloAck, 0, {
    magic: protocolMagic,
    versionMin: protocolVersions.min,
    versionMax: protocolVersions.max,
    features: 0n,
    clusterId,
    workerId: parseWorkerId(workerId),
    workerEpoch: 1,
    heartbeatIntervalMs: 10_000,
    bufferSizeBytes: 65_536,
    challenge: new Uint8Array(0),
    software: 'fuzz',
  })
  return Buffer.concat(encoder.take())
}

const strangers = fc.record({
  isIntroduced: fc.boolean(),
  said: fc.array(anyBytes, { minLength: 1, maxLength: 20 }),
  end: fc.constantFrom('silent', 'end', 'destroy'),
})

test('a worker that says anything fails what the client does there, and nothing else', async () => {
  let dials = 0
  await fc.assert(
    fc.asyncProperty(strangers, async ({ isIntroduced, said, end }) => {
      const bench = new ClientBench({ settings })
      const good = await bench.startWorker('good')
      const bad = bench.world.start('bad')
      const open = new Set<Connection>()
      const listener = await bench.drive(
        bad.network.listen({ host: '0.0.0.0', port: 9710 }, (connection) => {
          dials += 1
          open.add(connection)
          let heard = 0
          connection.start({
            onBytes: () => {
              // A piece for each piece: so that much is said in the middle of something.
              if (heard === 0 && isIntroduced) connection.write([introduction('worker-bad')])
              const bytes = said[heard]
              heard += 1
              if (bytes !== undefined) connection.write([bytes])
              else if (end === 'end') connection.end()
              else if (end === 'destroy') connection.destroy()
            },
            onDrain: () => undefined,
            onClose: () => open.delete(connection),
          })
        }),
      )
      const place = { workerId: parseWorkerId('worker-bad'), host: 'bad', port: 9710 }
      await expectOnlyItsOwn(bench, good, {
        written: descriptorOf(place, { partitionIndex: 2 }),
        read: descriptorOf(place, { partitionIndex: 3 }),
      })
      for (const connection of open) connection.destroy()
      await bench.drive(listener.close())
    }),
    fuzzBudget(),
  )
  expect(dials).toBeGreaterThan(0)
})

/** What a worker sends on a channel, but at the wrong time. */
const untimely = messageList.filter(
  ({ direction, channel }) => direction !== 'client-to-worker' && channel !== 'connection',
)

const mischief = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'none' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'swallow' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('say' as const),
      declaration: fc.constantFrom(...untimely),
      picks: fc.array(fc.nat(3), { minLength: 8, maxLength: 8 }),
      body: fc.oneof(fc.constant(new Uint8Array(0)), fc.uint8Array({ maxLength: 80 })),
      isOther: fc.boolean(),
    }),
  },
)

test('a worker that lies now and then is believed nothing that is not so', async () => {
  let lies = 0
  await fc.assert(
    fc.asyncProperty(fc.array(mischief, { minLength: 1, maxLength: 40 }), async (plan) => {
      const bench = new ClientBench({ settings })
      const good = await bench.startWorker('good')
      const liar = await bench.startWorker('liar')
      const read = descriptorOf(liar, { partitionIndex: 3 })
      await bench.drive(bench.write(read, emitSome))
      let turn = 0
      liar.faults.intercept = (on: FakeConnection, _message, channelId) => {
        const next = plan[turn]
        turn += 1
        if (next === undefined || next.kind === 'none') return false
        lies += 1
        if (next.kind === 'swallow') return true
        const { declaration, picks, body, isOther } = next
        const parts = declaration.body === 'none' || body.length === 0 ? [] : [body]
        if (declaration.body === 'data' && parts.length === 0) return false
        on.protocol.send(
          declaration,
          isOther ? channelId + 1 : channelId,
          fieldsOf(declaration.fields, picks),
          parts,
        )
        return false
      }
      const written = descriptorOf(liar, { partitionIndex: 2 })
      await expectOnlyItsOwn(bench, good, { written, read })
      await bench.drive(liar.stop())
    }),
    fuzzBudget(),
  )
  expect(lies).toBeGreaterThan(0)
})
