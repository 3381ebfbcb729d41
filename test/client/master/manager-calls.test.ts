import { expect, test } from 'vitest'
import {
  parseAttemptId,
  parseClientId,
  parseDataSetId,
  parseWorkerId,
} from '../../../client/common/ids.ts'
import { registerAndReport } from '../../../client/master/manager-calls.ts'
import { MasterJob } from '../../../client/master/master-job.ts'
import { ControlPlane, jobA } from '../../support/control-plane.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

test('thousands of partitions are allocated, listed anew after a restart, and released', async () => {
  const world = new VirtualWorld({ seed: 11, network: { chunking: 'whole' } })
  const plane = await ControlPlane.start(world, 3)
  const master = plane.master()
  await world.drive(master.register(jobA))
  const count = 9_000
  const descriptors = await world.drive(
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        master.allocate(jobA, { dataSet: 'd', index, attempt: `a_${String(index)}`, total: count }),
      ),
    ),
  )
  for (const descriptor of descriptors) plane.commit(descriptor)
  await world.clock.advance(3000)
  plane.killManager()
  await world.clock.advance(1000)
  await plane.startManager()
  await world.clock.advance(20_000)
  expect(master.lost).toEqual([])
  const [first] = descriptors
  if (first === undefined) throw new Error('nothing allocated')
  const description = await world.drive(plane.watcher.describeDataSet(jobA, first.key.dataSetId))
  expect(description.partitions).toHaveLength(count)
  expect(description.partitions.every((one) => one.state === 'committed')).toBe(true)
  for (const descriptor of descriptors) master.release(descriptor)
  await world.clock.advance(20_000)
  expect(plane.workers.map((worker) => worker.store.partitions.size)).toEqual([0, 0, 0])
})

test('a list of more data sets than one call takes is told all the same', async () => {
  const world = new VirtualWorld({ seed: 12, network: { chunking: 'whole' } })
  const plane = await ControlPlane.start(world, 1)
  const count = 10_001
  const job = new MasterJob({
    jobId: jobA,
    onPartitionsLost: () => undefined,
    onJobFailed: () => undefined,
  })
  for (let index = 0; index < count; index++) addTo(job, index)
  const client = plane.client(world.start('other'))
  const clientId = parseClientId('client-b')
  const { signal } = new AbortController()
  await world.drive(registerAndReport(client, job, { clientId, report: 'r', signal }))
  expect(job.reportedTo).toBe(client.managerEpoch)
  const last = parseDataSetId(`d${String(count - 1)}`)
  expect(await world.drive(client.describeDataSet(jobA, last))).toMatchObject({
    facts: { dataSetId: last },
  })
})

function addTo(job: MasterJob, index: number): void {
  const dataSetId = parseDataSetId(`d${String(index)}`)
  const holder = { workerId: parseWorkerId('w1'), host: 'w1', port: 9710 }
  job.add(
    {
      key: { jobId: jobA, dataSetId, partitionIndex: 0, attemptId: parseAttemptId('a') },
      holders: [{ ...holder, firstSubpartition: 0, lastSubpartition: 0 }],
      allocation: { managerEpoch: 1, jobEpoch: 2, sequence: index },
      bufferSizeBytes: 1,
      codec: 'none',
      subpartitionCount: 1,
      isBroadcast: false,
      totalPartitions: 1,
    },
    { dataSetId, totalPartitions: 1, subpartitionCount: 1, isBroadcast: false },
  )
}
