import { expect, test } from 'vitest'
import { ServiceSwitch } from '../../shuffle-worker/service-switch.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

function make() {
  const clock = new VirtualClock()
  const calls: string[] = []
  const service = new ServiceSwitch({
    clock,
    drainTimeoutMs: () => 30_000,
    writes: {
      startDraining: (reason) => calls.push(`drain: ${reason}`),
      endDraining: () => calls.push('end'),
      interrupt: () => calls.push('interrupt'),
    },
  })
  return { clock, calls, service }
}

test('a drain refuses writes, and ends those that are open when their time is over', async () => {
  const { clock, calls, service } = make()
  service.apply({ state: 'draining', reason: 'new disk', number: 1 })
  expect(calls).toEqual(['drain: it drains (new disk)'])
  await clock.advance(29_000)
  // Said again, for another reason: the time goes on.
  service.apply({ state: 'draining', reason: '', number: 2 })
  expect(calls).not.toContain('interrupt')
  await clock.advance(1_000)
  expect(calls).toContain('interrupt')
})

test('who is put back into service in time interrupts nothing', async () => {
  const { clock, calls, service } = make()
  service.apply({ state: 'draining', reason: '', number: 1 })
  service.apply({ state: 'serving', reason: '', number: 2 })
  await clock.advance(60_000)
  expect(calls).toEqual(['drain: it drains', 'end'])
  expect(clock.timerCount).toBe(0)
})

test('an excluded worker takes what was placed there before', () => {
  const { calls, service } = make()
  service.apply({ state: 'excluded', reason: '', number: 1 })
  expect(calls).toEqual(['end'])
})

test('a worker that stops takes no writes again, whatever people want', () => {
  const { clock, calls, service } = make()
  service.apply({ state: 'draining', reason: '', number: 1 })
  service.stop()
  service.apply({ state: 'serving', reason: '', number: 2 })
  expect(calls).toEqual(['drain: it drains', 'drain: it is stopping'])
  expect(clock.timerCount).toBe(0)
})
