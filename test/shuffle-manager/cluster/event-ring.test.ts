import { expect, test } from 'vitest'
import { EventRing } from '../../../shuffle-manager/cluster/event-ring.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

test('the ring keeps the latest events and says how many it forgot', () => {
  const ring = new EventRing({ clock: new VirtualClock(), capacity: 4 })
  for (let epoch = 1; epoch <= 10; epoch++) {
    ring.add({ type: 'manager-started', managerEpoch: epoch })
  }
  const all = ring.list({ after: 0, limit: 100 })
  expect(all.events.map((event) => event.number)).toEqual([7, 8, 9, 10])
  expect(all.events[0]).toMatchObject({ type: 'manager-started', managerEpoch: 7 })
  expect(all.forgotten).toBe(6)
  expect(ring.list({ after: 8, limit: 1 })).toMatchObject({ events: [{ number: 9 }], forgotten: 0 })
  expect(ring.list({ after: 10, limit: 5 })).toEqual({ events: [], forgotten: 0 })
})
