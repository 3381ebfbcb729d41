import { expect, test } from 'vitest'
import { parseWorkerId } from '../../../client/common/ids.ts'
import type { JobCommand } from '../../../client/manager/api-jobs.ts'
import { encodeKeys } from '../../../client/manager/key-columns.ts'
import { Cluster } from '../../../shuffle-manager/cluster/cluster.ts'
import { VirtualRandom } from '../../support/virtual-random.ts'
import { ClusterState, jobId, key, reported } from '../../support/cluster-state.ts'

test('silence is not judged in the first thirty seconds', async () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  state.cluster.start()
  await state.clock.advance(29_000)
  expect(worker.state).toBe('alive')
  await state.clock.advance(2_000)
  expect(worker.state).toBe('suspect')
  state.cluster.close()
})

test('a silent worker is suspect, then back with its next sign of life, or lost', async () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  state.cluster.start()
  await state.clock.advance(40_000)
  expect(worker.state).toBe('suspect')
  state.tell(worker, [])
  expect(worker.state).toBe('alive')
  await state.clock.advance(182_000)
  expect(worker.state).toBe('lost')
  expect(state.eventTypes()).toEqual([
    'worker-joined',
    'manager-started',
    'worker-silent',
    'worker-back',
    'worker-silent',
    'worker-lost',
  ])
  state.cluster.close()
})

test('a worker that lists name and that never comes is lost after the recovery time', async () => {
  const state = new ClusterState()
  state.cluster.start()
  state.registerJob()
  state.list([{ key: key(0), worker: 'w9', isCommitted: true }])
  for (let seconds = 0; seconds < 170; seconds += 5) {
    await state.clock.advance(5000)
    state.beat()
  }
  expect(state.state(key(0))).toBe('committed')
  await state.clock.advance(10_000)
  expect(state.state(key(0))).toBe('lost')
  state.cluster.close()
})

test('a manager whose own timer was late judges nobody for the time it was away', async () => {
  const state = new ClusterState()
  let awayMs = 0
  const clock = state.clock
  // The process stands still: its timers run late by as much as it was away.
  const cluster = new Cluster({
    clock: {
      nowMs: () => clock.nowMs() + awayMs,
      wallMs: () => clock.wallMs(),
      setTimer: (delayMs, callback) => clock.setTimer(delayMs, callback),
      setImmediate: (callback) => clock.setImmediate(callback),
    },
    random: new VirtualRandom(1),
    clusterId: state.cluster.clusterId,
    managerEpoch: 1,
    options: state.cluster.options,
    placement: 'round-robin',
    onLook: () => undefined,
  })
  cluster.start()
  await clock.advance(60_000)
  const worker = cluster.workers.getOrAdd(parseWorkerId('w1'), 60_000)
  worker.state = 'alive'
  awayMs = 200_000
  // What it had sent meanwhile is taken in before the timers run.
  const heardAgain = cluster.workers.getOrAdd(parseWorkerId('w2'), clock.nowMs() + awayMs)
  heardAgain.state = 'alive'
  await clock.advance(10_000)
  expect([worker.state, heardAgain.state]).toEqual(['alive', 'alive'])
  await clock.advance(10_000)
  expect([worker.state, heardAgain.state]).toEqual(['suspect', 'suspect'])
  const { events } = cluster.events.list({ after: 0, limit: 10 })
  expect(events.map((event) => event.type)).toEqual([
    'manager-started',
    'manager-late',
    'worker-silent',
    'worker-silent',
  ])
  cluster.close()
})

test('a job silent for ten minutes is released, and an event says so', async () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0)], 'committed')])
  state.cluster.start()
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1' }])
  for (let beats = 0; beats < 119; beats++) {
    await state.clock.advance(5000)
    state.tell(worker, [])
  }
  expect(state.commandsFor(worker)).toEqual([])
  await state.clock.advance(6000)
  expect(state.cluster.job(jobId).state).toBe('ending')
  expect(state.commandsFor(worker)).toEqual(['release a_0'])
  state.cluster.close()
})

test('a release that a worker took in and never did is told again within a minute', async () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0)], 'committed')])
  state.cluster.start()
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1' }])
  state.drop([key(0)])
  expect(state.commandsFor(worker)).toEqual(['release a_0'])
  for (let beats = 0; beats < 13; beats++) {
    await state.clock.advance(5000)
    state.tell(worker, [])
  }
  expect(state.commandsFor(worker)).toEqual(['release a_0'])
  state.cluster.close()
})

test('a lost worker is forgotten when no job knows anything of it, and what it was to be told is not', async () => {
  const state = new ClusterState()
  const worker = state.register('w1', [reported([key(0)], 'committed')])
  state.cluster.start()
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1', isCommitted: true }])
  state.cluster.workerService.ask(worker, { state: 'excluded', reason: 'bad' })
  const beat = () => {
    state.beat()
  }
  for (let beats = 0; beats < 15 * 60; beats++) {
    await state.clock.advance(5000)
    beat()
  }
  expect(worker.state).toBe('lost')
  expect(state.cluster.workers.all()).toEqual([worker])
  state.drop([key(0)])
  await state.clock.advance(2000)
  expect(state.cluster.workers.all()).toEqual([])
  expect(state.eventTypes()).toContain('worker-forgotten')
  const again = state.register('w1')
  expect(again.number).not.toBe(worker.number)
  expect(state.commandsFor(again)).toEqual(['service excluded'])
  state.cluster.close()
})

test('a worker that was drained and taken away is forgotten as soon as it would be lost', async () => {
  const state = new ClusterState()
  const drained = state.register('w1', [reported([key(0)], 'committed')])
  state.register('w2')
  state.cluster.start()
  state.registerJob()
  state.list([{ key: key(0), worker: 'w1', isCommitted: true }])
  state.cluster.workerService.ask(drained, { state: 'draining', reason: 'to be removed' })
  const silentFor = async (seconds: number) => {
    for (let beats = 0; beats < seconds / 5; beats++) {
      await state.clock.advance(5000)
      state.beat()
    }
  }
  await silentFor(190)
  expect([...state.cluster.workers.all()].map((each) => each.state)).toEqual(['lost', 'lost'])
  state.drop([key(0)])
  await silentFor(5)
  expect([...state.cluster.workers.all()].map((each) => each.workerId)).toEqual(['w2'])
  state.cluster.close()
})

test('after close no timer is left', () => {
  const state = new ClusterState()
  state.cluster.start()
  state.cluster.close()
  expect(state.clock.eventCount).toBe(0)
})

test('what was allocated for a caller that had given up is asked about, and released', async () => {
  const state = new ClusterState()
  const worker = state.register('w1')
  state.cluster.start()
  state.registerJob()
  await state.clock.advance(6_000)
  // The release came first: the call that allocates was under way for long.
  const job = state.cluster.job(jobId)
  state.cluster.jobLists.releaseKeys(job, encodeKeys([key(0), key(1)]))
  state.allocate([key(0), key(1), key(2)])
  state.tell(worker, [reported([key(2)], 'writing')])
  const asked: JobCommand[] = []
  for (let seconds = 0; seconds < 200; seconds += 5) {
    await state.clock.advance(5_000)
    state.tell(worker, [])
    const commands = state.beat()
    if (commands === 'resync') continue
    for (const command of commands) {
      if (command.type !== 'asked') continue
      asked.push(command)
      // Until the answer all stays as it is.
      expect([state.state(key(0)), state.state(key(1))]).toEqual(['allocated', 'allocated'])
      const sequence = job.sequence + 1
      state.beat({ answered: command.question, sequence, claimed: encodeKeys([key(1)]) })
    }
  }
  expect(asked).toHaveLength(1)
  expect(asked[0]).toMatchObject({ dataSets: encodeKeys([key(0), key(1)]) })
  expect(state.state(key(0))).toBe('releasing')
  expect(state.state(key(1))).toBe('allocated')
  expect(state.state(key(2))).toBe('writing')
  state.cluster.close()
})
