// Small fixed scripts, run once for each message, disk operation and timer in them, and for each fault
// that can hit there: only the right output or a clear error, and nothing left behind.

import { VirtualRandom } from '../support/virtual-random.ts'
import type { FaultKind, FaultPlan } from './fault-plan.ts'
import { drawPlan, type JobPlan, type Plan } from './plan.ts'
import { Simulation } from './simulation.ts'

export interface Script {
  readonly name: string
  readonly plan: Plan
}

const atMessage: readonly FaultKind[] = [
  'link-cut-at-message',
  'worker-killed-at-message',
  'manager-killed-at-message',
]
const atOperation: readonly (readonly [kind: FaultKind, other: number])[] = [
  // Even: before the operation; odd: after it.
  ['worker-killed-at-operation', 0],
  ['worker-killed-at-operation', 1],
  ['disk-error', 7],
  ['disk-short-write', 0],
]
/** Any; the script and the point decide. */
const seed = 1

/** One worker, one producer and one consumer; then several of each; then broadcast and two workers. */
export const scripts: readonly Script[] = [
  scriptOf('one of each', { tasks: 1, records: 20, workers: 1, broadcastShare: 0 }),
  scriptOf('two of each', { tasks: 2, records: 40, workers: 1, broadcastShare: 0 }),
  scriptOf('broadcast', { tasks: 1, records: 20, workers: 2, broadcastShare: 0.3 }),
]

export interface PointRun {
  readonly point: string
  readonly findings: readonly string[]
}

/** Every `step`-th point of a script from the `offset`-th on: offsets 0 to step - 1 make all of them. */
export async function* everyPoint(
  script: Script,
  { step, offset }: { readonly step: number; readonly offset: number },
): AsyncGenerator<PointRun, void> {
  const calm = new Simulation(seed, script.plan, {})
  const { findings, figures } = await calm.run()
  yield { point: `${script.name}: no fault`, findings }
  const operationCount = calm.virtual.disk('worker-0').operationCount
  for (const kind of atMessage) {
    for (let number = 1 + offset; number <= figures.messages; number += step) {
      yield await runWith(script, faultAt(kind, number, 0))
    }
  }
  for (let member = 0; member < calm.cluster.members.length; member += 1) {
    for (let number = 1 + offset; number <= calm.timersInJobs; number += step) {
      const fault = faultAt('process-killed-at-timer', number, 0)
      yield await runWith(script, { ...fault, target: member })
    }
  }
  for (const [kind, other] of atOperation) {
    for (let number = 1 + offset; number <= operationCount; number += step) {
      yield await runWith(script, faultAt(kind, number, other))
    }
  }
}

async function runWith(script: Script, fault: FaultPlan): Promise<PointRun> {
  const simulation = new Simulation(seed, { ...script.plan, faults: [fault] }, {})
  const { findings } = await simulation.run()
  const where = `${String(fault.after)} target ${String(fault.target)} other ${String(fault.other)}`
  return { point: `${script.name}: ${fault.kind} ${where}`, findings }
}

function faultAt(kind: FaultKind, after: number, other: number): FaultPlan {
  return { kind, atMs: 0, durationMs: 300, target: 0, other, after, isExact: true }
}

function scriptOf(
  name: string,
  facts: {
    readonly tasks: number
    readonly records: number
    readonly workers: number
    readonly broadcastShare: number
  },
): Script {
  const drawn = drawPlan(new VirtualRandom(`script ${name}`), { isCalm: true })
  const shape = {
    recordCount: facts.records,
    recordBytesMax: 300,
    hugeRecordBytes: 0,
    broadcastShare: facts.broadcastShare,
    eventShare: 0.05,
    usedShare: 1,
  }
  const stage = {
    taskCount: facts.tasks,
    subpartitionCount: 2,
    partitionMemoryBuffers: 8,
    gateMemoryBuffers: 8,
    delayMaxMs: 10,
    pauseMaxMs: 5,
    pauseEvery: 20,
    isEager: false,
    isInterleaved: false,
  }
  const job: JobPlan = {
    name: 'job-0',
    startMs: 0,
    stages: [
      { ...stage, outputs: Array.from({ length: facts.tasks }, () => shape) },
      { ...stage, outputs: undefined },
    ],
    twinChance: 0,
    cancelChance: 0,
    earlyReleaseChance: 0,
    zombieChance: 0,
    updateChance: 0.5,
    wholeRangeChance: 0,
  }
  return {
    name,
    plan: {
      cluster: {
        ...drawn.cluster,
        workerCount: facts.workers,
        directoriesPerWorker: 1,
        taskHostCount: 1,
        smallPartitionBytes: facts.tasks === 2 ? 4096 : 0,
        durability: facts.workers === 2 ? 'sync' : 'none',
        chunkBytesMax: 20_000,
        latencyMaxMs: 0.5,
      },
      jobs: [job],
      faults: [],
    },
  }
}
