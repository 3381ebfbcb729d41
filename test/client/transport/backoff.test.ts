import { expect, test } from 'vitest'
import { Backoff } from '../../../client/transport/backoff.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

function setUp() {
  const world = new VirtualWorld()
  const { clock, random } = world.main
  return { world, backoff: new Backoff({ clock, random, delayMinMs: 100, delayMaxMs: 1000 }) }
}

test('pauses double up to the longest, with jitter of up to a half', () => {
  const { backoff } = setUp()
  for (const fullMs of [100, 200, 400, 800, 1000, 1000]) {
    const delayMs = backoff.nextDelayMs()
    expect(delayMs).toBeGreaterThanOrEqual(fullMs / 2)
    expect(delayMs).toBeLessThanOrEqual(fullMs)
  }
})

test('counts the time since the first failure, until a success', async () => {
  const { world, backoff } = setUp()
  expect(backoff.failingForMs).toBe(0)
  backoff.nextDelayMs()
  await world.clock.advance(70)
  backoff.nextDelayMs()
  expect(backoff.failingForMs).toBe(70)
  backoff.reset()
  expect(backoff.failingForMs).toBe(0)
  expect(backoff.nextDelayMs()).toBeLessThanOrEqual(100)
})

test('a pause ends when its signal aborts', async () => {
  const { world, backoff } = setUp()
  const abort = new AbortController()
  const pause = backoff.pause(abort.signal)
  abort.abort(new Error('enough'))
  await expect(pause).rejects.toThrow('enough')
  expect(world.clock.timerCount).toBe(0)
})
