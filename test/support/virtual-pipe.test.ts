import { expect, test } from 'vitest'
import { VirtualClock } from './virtual-clock.ts'
import { VirtualPipe } from './virtual-pipe.ts'
import { VirtualRandom } from './virtual-random.ts'

test('bytes arrive in the order in which they left, at whatever times they leave', async () => {
  const clock = new VirtualClock()
  const settings = { latencyMs: [0.1, 3], windowBytes: 1_000_000, chunking: 'random' } as const
  const pipe = new VirtualPipe({ clock, random: new VirtualRandom(1), settings })
  const received: number[] = []
  pipe.setReader({
    onBytes: (bytes) => {
      received.push(...bytes)
      return true
    },
    onEnd: () => undefined,
  })
  const sent: number[] = []
  for (let index = 0; index < 20_000; index += 1) {
    sent.push(index & 0xff)
    pipe.write([Uint8Array.of(index & 0xff)], () => undefined)
    await clock.advance(0.013)
  }
  await clock.advance(100)
  expect(received).toEqual(sent)
})
