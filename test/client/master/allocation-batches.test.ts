import { expect, test } from 'vitest'
import {
  AllocationBatches,
  batchRequestsMax,
  type AllocationBatch,
} from '../../../client/master/allocation-batches.ts'
import { MasterJob } from '../../../client/master/master-job.ts'
import { facts, jobId, key } from '../../support/cluster-state.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function ready() {
  const clock = new VirtualClock()
  const sent: AllocationBatch[] = []
  const batches = new AllocationBatches({ clock, send: (batch) => sent.push(batch) })
  const job = new MasterJob({
    jobId,
    onPartitionsLost: () => undefined,
    onJobFailed: () => undefined,
  })
  const add = (index: number, dataSet = 'd') => {
    const request = {
      key: { jobId, ...key(index, `a_${String(index)}`, dataSet) },
      host: undefined,
      resolve: () => undefined,
      reject: () => undefined,
    }
    batches.add(job, facts({ dataSetId: dataSet }), request)
  }
  return { clock, sent, add }
}

test('what is asked for in one turn is one call a data set', async () => {
  const { clock, sent, add } = ready()
  for (let index = 0; index < 10; index++) add(index, index % 2 === 0 ? 'd' : 'e')
  expect(sent).toEqual([])
  await clock.settle()
  expect(sent.map((batch) => [batch.facts.dataSetId, batch.requests.length])).toEqual([
    ['d', 5],
    ['e', 5],
  ])
  add(11)
  await clock.settle()
  expect(sent).toHaveLength(3)
})

test('a call has a bounded number of partitions', async () => {
  const { clock, sent, add } = ready()
  for (let index = 0; index < batchRequestsMax * 2 + 5; index++) add(index)
  await clock.settle()
  expect(sent.map((batch) => batch.requests.length)).toEqual([
    batchRequestsMax,
    batchRequestsMax,
    5,
  ])
})
