import { describe, expect, test, vi } from 'vitest'
import { sleep } from '../../../client/common/clock.ts'
import { managerApi } from '../../../client/manager/api.ts'
import { parseJobId, partitionKeyText } from '../../../client/common/ids.ts'
import type { Route } from '../../../client/manager/route.ts'
import { ControlPlane, jobA } from '../../support/control-plane.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const none = { params: {}, query: {}, body: undefined }
const one = { dataSet: 'd', index: 0, attempt: 'a0' }

async function ready(options: Parameters<typeof ControlPlane.start>[2] = {}) {
  const world = new VirtualWorld({ seed: 21 })
  const plane = await ControlPlane.start(world, 1, options)
  const master = plane.master()
  await world.drive(master.register(jobA))
  return { world, plane, master }
}

const jobsOf = async ({ world, plane }: { world: VirtualWorld; plane: ControlPlane }) =>
  (await world.drive(plane.watcher.call(managerApi.listJobs, none))).jobs

test('a descriptor says all that a task needs', async () => {
  const { world, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, { ...one, expectedBytes: 77 }))
  expect(descriptor).toMatchObject({
    key: { jobId: jobA, dataSetId: 'd', partitionIndex: 0, attemptId: 'a0' },
    holders: [
      { workerId: 'w1', host: 'w1', port: 9710, firstSubpartition: 0, lastSubpartition: 9 },
    ],
    allocation: { managerEpoch: expect.any(Number) as number, sequence: 1 },
    bufferSizeBytes: 32_768,
    codec: 'lz4',
    subpartitionCount: 10,
    totalPartitions: 100,
    isBroadcast: false,
    expectedBytes: 77,
  })
})

test('a job that is registered nowhere, or twice, is refused', async () => {
  const { world, master } = await ready()
  const other = parseJobId('other')
  await expect(world.drive(master.allocate(other, one))).rejects.toMatchObject({
    code: 'JOB_UNKNOWN',
  })
  await expect(world.drive(master.register(jobA))).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
})

test('many jobs at once are no leak of listeners', async () => {
  const { world, master } = await ready()
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  try {
    const jobs = Array.from({ length: 30 }, (_, index) => parseJobId(`job-${String(index)}`))
    await world.drive(Promise.all(jobs.map((job) => master.register(job))))
    // Warnings are told in a later turn.
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('warning', onWarning)
  }
  expect(warnings).toEqual([])
})

test('the end of a job releases everything of it', async () => {
  const { world, plane, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, one))
  plane.commit(descriptor)
  await world.clock.advance(500)
  await world.drive(master.master.unregisterJob(jobA))
  await world.drive(master.master.unregisterJob(jobA))
  await world.clock.advance(1000)
  expect([...plane.worker('w1').store.partitions]).toEqual([])
  expect(await jobsOf({ world, plane })).toEqual([])
})

test('the end of a job is no failure while the manager is away', async () => {
  const { world, plane, master } = await ready()
  plane.killManager()
  await world.drive(master.master.unregisterJob(jobA))
})

test('a detached job keeps its data, and another client takes it up', async () => {
  const { world, plane, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, one))
  plane.commit(descriptor)
  await world.clock.advance(500)
  await world.drive(master.master.detachJob(jobA, 3_600_000))
  await world.clock.advance(3_000_000)
  expect(await jobsOf({ world, plane })).toMatchObject([{ state: 'detached' }])
  const next = plane.master('other-machine')
  await world.drive(next.register(jobA))
  expect(await jobsOf({ world, plane })).toMatchObject([{ state: 'registered' }])
})

test('what was released of a job is gone before the job is detached', async () => {
  const { world, plane, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, one))
  plane.commit(descriptor)
  await world.clock.advance(500)
  master.release(descriptor)
  await world.drive(master.master.detachJob(jobA, 3_600_000))
  await world.clock.advance(10_000)
  expect([...plane.worker('w1').store.partitions]).toEqual([])
  expect(await jobsOf({ world, plane })).toMatchObject([{ state: 'detached' }])
})

test('a second living client is refused; one that takes over ends the first', async () => {
  const { world, plane, master } = await ready()
  const second = plane.master('other-machine')
  await expect(world.drive(second.register(jobA))).rejects.toMatchObject({ code: 'JOB_ID_IN_USE' })
  await world.clock.settle()
  await world.drive(second.register(jobA, { takeOver: true }))
  await world.clock.advance(10_000)
  expect(master.failures).toEqual(['SUPERSEDED'])
  await expect(world.drive(master.allocate(jobA, one))).rejects.toMatchObject({
    code: 'JOB_UNKNOWN',
  })
  await world.drive(second.allocate(jobA, one))
  expect(second.failures).toEqual([])
})

test('what the one taken over from had is released, unless the new one claims it', async () => {
  const { world, plane, master } = await ready()
  plane.commit(await world.drive(master.allocate(jobA, one)))
  await world.clock.advance(500)
  master.kill()
  const second = plane.master('other-machine')
  await world.drive(second.register(jobA, { takeOver: true }))
  await world.clock.advance(2000)
  expect([...plane.worker('w1').store.partitions]).toEqual([])
})

test('who gives a registration up does not end the job of the client that has it', async () => {
  const { world, plane, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, one))
  const second = plane.master('other-machine').master
  const ignored = () => undefined
  const context = { jobId: jobA, onPartitionsLost: ignored, onJobFailed: ignored }
  const refused = expect(second.registerJob(context)).rejects.toMatchObject({
    code: 'JOB_ID_IN_USE',
  })
  await world.drive(second.unregisterJob(jobA))
  await world.drive(refused)
  await world.clock.advance(1000)
  const [place] = await world.drive(plane.watcher.locate(jobA, [descriptor.key]))
  expect(place?.workerId).toBe('w1')
})

test('a registration that fails after its job has ended leaves alone the one that began anew', async () => {
  const { world, plane, master } = await ready()
  await world.drive(master.master.unregisterJob(jobA))
  plane.killManager()
  const first = expect(master.register(jobA)).rejects.toMatchObject({ code: 'NO_MANAGER' })
  await world.clock.advance(1000)
  const ended = master.master.unregisterJob(jobA)
  await world.clock.advance(5000)
  const second = master.register(jobA)
  await world.drive(first)
  await world.drive(ended)
  await plane.startManager()
  await world.drive(second)
  expect((await world.drive(master.allocate(jobA, one))).key.jobId).toBe(jobA)
})

describe('a job that is registered again while its end is told', () => {
  /** Ends of jobs are told late. */
  async function withLateEnds() {
    const { world, plane } = await ready()
    const client = plane.client(world.start('late'))
    const call = client.call.bind(client)
    const ends: readonly Route[] = [managerApi.deleteJob, managerApi.detachJob]
    vi.spyOn(client, 'call').mockImplementation(async (route: Route, input, options) => {
      if (ends.includes(route)) await sleep(world.clock, 300)
      return await call(route, input, options)
    })
    plane.client = () => client
    const master = plane.master('late-master')
    const jobId = parseJobId('again')
    await world.drive(master.register(jobId))
    return { world, plane, master, jobId }
  }

  test.each(['unregisterJob', 'detachJob'] as const)('by %s begins after it', async (end) => {
    const { world, plane, master, jobId } = await withLateEnds()
    const ended = master.master[end](jobId)
    await world.drive(master.register(jobId))
    const descriptor = await world.drive(master.allocate(jobId, one))
    plane.commit(descriptor)
    await world.drive(ended)
    await world.clock.advance(10_000)
    expect(master.failures).toEqual([])
    expect(master.lost).toEqual([])
    expect(plane.worker('w1').store.keys()).toEqual([partitionKeyText(descriptor.key)])
    const told = (await jobsOf({ world, plane })).find((job) => job.jobId === jobId)
    expect(told).toMatchObject({ state: 'registered' })
  })

  test('is given up without waiting for that, when its master closes', async () => {
    const { world, master, jobId } = await withLateEnds()
    const ended = master.master.unregisterJob(jobId)
    const refused = expect(master.register(jobId)).rejects.toMatchObject({ code: 'CANCELLED' })
    const startMs = world.clock.nowMs()
    await world.drive(master.master.close())
    await world.drive(refused)
    expect(world.clock.nowMs() - startMs).toBeLessThan(300)
    await world.drive(ended)
  })
})

test('an allocation waits a while for a worker to come, then says what is short', async () => {
  const world = new VirtualWorld({ seed: 22 })
  const plane = await ControlPlane.start(world, 0)
  const master = plane.master()
  await world.drive(master.register(jobA))
  await world.clock.advance(6000)
  await expect(world.drive(master.allocate(jobA, one))).rejects.toMatchObject({
    code: 'NO_WORKER',
    message: expect.stringMatching(/0 of 0 workers are alive/) as string,
  })
  const second = master.allocate(jobA, { ...one, attempt: 'a1' })
  await world.clock.advance(3000)
  plane.addWorker('w1')
  expect((await world.drive(second)).holders[0]?.workerId).toBe('w1')
})

test('an allocation waits for a manager that is away', async () => {
  const { world, plane, master } = await ready()
  plane.killManager()
  const early = master.allocate(jobA, one)
  await world.clock.advance(3000)
  await plane.startManager()
  expect((await world.drive(early)).holders[0]?.workerId).toBe('w1')
})

test('an allocation that nobody answers fails by name, and leaves nothing behind', async () => {
  const { world, plane, master } = await ready()
  plane.killManager()
  await expect(world.drive(master.allocate(jobA, one))).rejects.toMatchObject({
    code: 'NO_MANAGER',
  })
  await plane.startManager()
  await world.clock.advance(20_000)
  expect(await jobsOf({ world, plane })).toMatchObject([{ partitionCount: 0 }])
})

test('a limit of the job fails the allocation at once, and other jobs go on', async () => {
  const { world, master } = await ready({ jobPartitionsMax: 2 })
  for (let index = 0; index < 2; index++) {
    await world.drive(master.allocate(jobA, { ...one, index, attempt: `a${String(index)}` }))
  }
  const startMs = world.clock.nowMs()
  const third = master.allocate(jobA, { ...one, index: 2, attempt: 'a2' })
  await expect(world.drive(third)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
  expect(world.clock.nowMs() - startMs).toBeLessThan(100)
  const other = parseJobId('other')
  await world.drive(
    master.master.registerJob({
      jobId: other,
      onPartitionsLost: () => undefined,
      onJobFailed: () => undefined,
    }),
  )
  await world.drive(master.allocate(other, one))
})

test('one heartbeat speaks for all jobs of the process', async () => {
  const { world, plane, master } = await ready()
  for (let count = 0; count < 5; count++) {
    await world.drive(
      master.master.registerJob({
        jobId: parseJobId(`more-${String(count)}`),
        onPartitionsLost: () => undefined,
        onJobFailed: () => undefined,
      }),
    )
  }
  await world.clock.advance(700_000)
  const jobs = await jobsOf({ world, plane })
  expect(jobs).toHaveLength(6)
  expect(jobs.every((job) => job.silentMs <= 6000)).toBe(true)
})

test('losses are told promptly, and a callback that throws harms nobody', async () => {
  const { world, plane, master } = await ready()
  const jobId = parseJobId('throws')
  await world.drive(
    master.master.registerJob({
      jobId,
      onPartitionsLost: () => {
        throw new Error('a fault of the runtime')
      },
      onJobFailed: () => undefined,
    }),
  )
  const bad = await world.drive(master.allocate(jobId, one))
  const good = await world.drive(master.allocate(jobA, one))
  plane.commit(bad)
  plane.commit(good)
  await world.clock.advance(1000)
  plane.worker('w1').store.lose([bad.key, good.key])
  await world.clock.advance(100)
  expect(master.lost.map((lost) => partitionKeyText(lost.key))).toEqual([
    partitionKeyText(good.key),
  ])
})

test('a release while the manager is away is made good when it is back', async () => {
  const { world, plane, master } = await ready()
  const descriptor = await world.drive(master.allocate(jobA, one))
  plane.commit(descriptor)
  await world.clock.advance(1000)
  plane.killManager()
  master.release(descriptor)
  await world.clock.advance(30_000)
  await plane.startManager()
  await world.clock.advance(10_000)
  expect([...plane.worker('w1').store.partitions]).toEqual([])
})

test('close leaves no timer, and the jobs to those who come after', async () => {
  const { world, plane, master } = await ready()
  await world.clock.advance(1000)
  await world.drive(master.master.close())
  await world.drive(master.master.close())
  await expect(world.drive(master.register(jobA))).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(await jobsOf({ world, plane })).toMatchObject([{ state: 'registered' }])
})

test('a job that ends while it is registered again after a restart of the manager has ended there too', async () => {
  for (const seed of [14, 15, 16, 18]) {
    const world = new VirtualWorld({ seed, network: { latencyMs: [1, 60] } })
    const plane = await ControlPlane.start(world, 1)
    await world.clock.advance(8000)
    const master = plane.master()
    await world.drive(master.register(jobA))
    await world.clock.advance(1000)
    plane.killManager()
    await world.clock.advance(1000)
    await plane.startManager()
    await world.clock.advance(seed * 15)
    await world.drive(master.master.unregisterJob(jobA))
    await world.clock.advance(5000)
    expect(await jobsOf({ world, plane })).toEqual([])
  }
})
