import { expect, test } from 'vitest'
import { ClusterState, jobId, key, reported } from '../../support/cluster-state.ts'

interface Shown {
  readonly version: string
  readonly groups: { readonly state: string; readonly partitionIndices: number[] }[]
  readonly workers: { readonly host: string }[]
}

function describe(state: ClusterState, knownVersion?: string): Shown {
  const table = state.cluster.jobs.get(jobId)?.tables.get(key(0).dataSetId)
  return JSON.parse(state.cluster.descriptions.describe(table, knownVersion).toString()) as Shown
}

async function ready(count: number, attempt: (index: number) => string): Promise<ClusterState> {
  const state = new ClusterState()
  for (const name of ['w1', 'w2', 'w3']) state.register(name)
  await state.clock.advance(6000)
  state.registerJob()
  state.allocate(
    Array.from({ length: count }, (_, index) => key(index, attempt(index))),
    { totalPartitions: count },
  )
  return state
}

test('it is made once while nothing changes', async () => {
  const state = await ready(10, (index) => `a_${String(index)}`)
  const first = describe(state)
  for (let asked = 0; asked < 100; asked++) describe(state)
  expect(state.cluster.descriptions.madeCount).toBe(1)
  const worker = state.cluster.workers.at(0)
  state.tell(worker, [reported([key(0)], 'committed')])
  const second = describe(state)
  expect(second.version).not.toBe(first.version)
  expect(second.groups.map((group) => [group.state, group.partitionIndices.length])).toEqual([
    ['committed', 1],
    ['allocated', 9],
  ])
})

test('one who knows the present version gets no content', async () => {
  const state = await ready(3, (index) => `a_${String(index)}`)
  const { version } = describe(state)
  expect(describe(state, version)).toEqual({ version, workers: [], groups: [] })
})

test('a worker with a new address makes it new', async () => {
  const state = await ready(3, (index) => `a_${String(index)}`)
  const { version } = describe(state)
  state.cluster.workers.at(0).moveTo('elsewhere', 1)
  const moved = describe(state, version)
  expect(moved.workers.map((worker) => worker.host)).toContain('elsewhere')
})

test('what is not claimed or on its way out is not in it', async () => {
  const state = await ready(2, (index) => `a_${String(index)}`)
  state.tell(state.cluster.workers.at(0), [reported([key(0, 'zombie')], 'committed')])
  state.drop([key(1)])
  expect(describe(state).groups).toMatchObject([{ state: 'allocated', partitionIndices: [0] }])
})

test('an unknown data set has an empty description', () => {
  const state = new ClusterState()
  expect(describe(state)).toMatchObject({ workers: [], groups: [] })
})

test('for ten thousand producers with the longest usual ids it stays below a mebibyte', async () => {
  const vertex = 'c'.repeat(32)
  const graph = 'd'.repeat(32)
  const state = await ready(10_000, (index) => `${graph}_${vertex}_${String(index)}_0`)
  const table = state.cluster.jobs.get(jobId)?.tables.get(key(0).dataSetId)
  expect(state.cluster.descriptions.describe(table, undefined).length).toBeLessThan(1024 * 1024)
})
