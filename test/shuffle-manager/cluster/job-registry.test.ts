import { expect, test } from 'vitest'
import { parseDataSetId, parseJobId } from '../../../client/common/ids.ts'
import { JobRegistry } from '../../../shuffle-manager/cluster/job-registry.ts'
import { key } from '../../support/cluster-state.ts'

const add = (registry: JobRegistry, name: string) =>
  registry.add({ jobId: parseJobId(name), heardMs: 0, keepMs: 1 })

test('there is a limit to jobs, and it names itself', () => {
  const registry = new JobRegistry({ jobsMax: 1 })
  const checkRoom = () => {
    registry.checkRoom(parseJobId('b'))
  }
  checkRoom()
  add(registry, 'a')
  expect(checkRoom).toThrow(/jobs-max/)
})

test('a reference leads to table and row while the row lives', () => {
  const registry = new JobRegistry({ jobsMax: 5 })
  const job = add(registry, 'a')
  const table = registry.tableOf(job, parseDataSetId('d'))
  const allocation = { managerEpoch: 1, jobEpoch: 1, sequence: 1 }
  const row = table.insert({ ...key(4), worker: 0, state: 'allocated', allocation })
  const ref = table.ref(row)
  expect(registry.resolve(ref)).toEqual({ table, row })
  expect(registry.ownerOf(table)).toBe(job)
  table.remove(row)
  expect(registry.resolve(ref)).toBeUndefined()
})

test('references into a dropped table lead nowhere', () => {
  const registry = new JobRegistry({ jobsMax: 5 })
  const job = add(registry, 'a')
  const table = registry.tableOf(job, parseDataSetId('d'))
  registry.dropTable(job, table)
  expect(registry.resolve(table.ref(0))).toBeUndefined()
  expect(registry.tableOf(job, parseDataSetId('d')).number).not.toBe(table.number)
  registry.remove(job)
  expect(registry.size).toBe(0)
})

test('time-in-state sums add up, in a bounded number of states', () => {
  const registry = new JobRegistry({ jobsMax: 5 })
  const job = add(registry, 'a')
  registry.addTimeInState(job, { credit: 5 })
  registry.addTimeInState(job, { credit: 7 })
  for (let index = 0; index < 100; index++) {
    registry.addTimeInState(job, { [`s${String(index)}`]: 1 })
  }
  expect(job.timeInStateMs.get('credit')).toBe(12)
  expect(job.timeInStateMs.size).toBe(64)
  registry.addTimeInState(add(registry, 'b'), { credit: 1 })
  expect(registry.timeInStateMs.get('credit')).toBe(13)
})
