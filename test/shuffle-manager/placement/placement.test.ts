import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PlacementWorker } from '../../../shuffle-manager/placement/candidate.ts'
import { place, placementNames } from '../../../shuffle-manager/placement/placement.ts'
import { facts, healthyDirectory } from '../../support/cluster-state.ts'
import { VirtualRandom } from '../../support/virtual-random.ts'

function worker(number: number, change: Partial<PlacementWorker> = {}): PlacementWorker {
  return {
    number,
    host: `h${String(number)}`,
    directories: [healthyDirectory],
    partitionCount: 0,
    pendingBytes: 0,
    ...change,
  }
}

const request = {
  facts: facts(),
  countsByWorker: new Map<number, number>(),
  cursor: 0,
  minFreeBytes: 1000,
  random: new VirtualRandom(3),
}
const some = (count: number) => Array.from({ length: count }, () => undefined)

test('every strategy but the one that looks at other jobs spreads a data set evenly', () => {
  for (const name of ['round-robin', 'locality', 'random'] as const) {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 80 }), (w, n) => {
        const workers = Array.from({ length: w }, (_, index) => worker(index))
        const { workerNumbers } = place(name, { ...request, workers, producerHosts: some(n) })
        const counts = workers.map(
          ({ number }) => workerNumbers.filter((chosen) => chosen === number).length,
        )
        expect(workerNumbers).toHaveLength(n)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
      }),
    )
  }
})

test('no strategy goes back to where earlier attempts failed, unless there is no other', () => {
  const workers = [worker(0), worker(1, { partitionCount: 50 }), worker(2, { partitionCount: 50 })]
  const countsByWorker = new Map([
    [1, 50],
    [2, 50],
  ])
  for (const name of placementNames) {
    const { workerNumbers } = place(name, {
      ...request,
      workers,
      countsByWorker,
      producerHosts: ['h0', 'h0', 'h0'],
      avoided: [[0], [0, 1], [0, 1, 2]],
    })
    expect(workerNumbers).toHaveLength(3)
    expect(workerNumbers[0]).not.toBe(0)
    expect(workerNumbers[1]).toBe(2)
  }
})

test('no strategy chooses a worker without space, of another disk kind, or with a sick disk', () => {
  const directory = (change: Partial<typeof healthyDirectory>) => [
    { ...healthyDirectory, ...change },
  ]
  const workers = [
    worker(0, { directories: directory({ freeBytes: 10 }) }),
    worker(1, { directories: directory({ kind: 'hdd' }) }),
    worker(2, { directories: directory({ health: 'failed' }) }),
    worker(3, { directories: directory({ isFull: true }) }),
    worker(4, { directories: [] }),
    worker(5, { pendingBytes: 100e9 }),
    worker(6),
  ]
  for (const name of placementNames) {
    const { workerNumbers } = place(name, {
      ...request,
      facts: facts({ diskKind: 'ssd' }),
      workers,
      producerHosts: some(10),
    })
    expect(new Set(workerNumbers)).toEqual(new Set([6]))
  }
})

test('space that a batch itself takes counts: it fills what there is and says how far it came', () => {
  const directories = [{ ...healthyDirectory, freeBytes: 10_000 }]
  const workers = [worker(0, { directories }), worker(1, { directories })]
  const { workerNumbers } = place('round-robin', {
    ...request,
    facts: facts({ expectedBytes: 3000 }),
    workers,
    producerHosts: some(10),
  })
  expect(workerNumbers.sort()).toEqual([0, 0, 0, 1, 1, 1])
})

test('with no floor and nothing expected a worker without any directory is still not chosen', () => {
  const { workerNumbers } = place('round-robin', {
    ...request,
    minFreeBytes: 0,
    workers: [worker(0, { directories: [] })],
    producerHosts: some(1),
  })
  expect(workerNumbers).toEqual([])
})
