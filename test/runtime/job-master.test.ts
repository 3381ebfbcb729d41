import { describe, expect, test } from 'vitest'

import { realClock } from '../../client/common/clock.ts'
import { realRandom } from '../../client/common/random.ts'
import { parseJobId, ShuffleError, silentLogger, type PartitionKey } from '../../client/index.ts'
import { JobMaster, type JobLimits } from '../../runtime/job-master.ts'
import type { JobResult } from '../../runtime/job-result.ts'
import { divideTaskMemory, type JobPlan } from '../../runtime/job-plan.ts'
import type { PoolLimits } from '../../runtime/task-process-pool.ts'
import type { Task, TaskContext, TaskRegistry } from '../../runtime/task.ts'
import { deferred } from '../support/deferred.ts'
import { LocalTaskProcesses } from '../support/local-task-processes.ts'
import { MemoryShuffle } from '../support/memory-shuffle.ts'

/** Emits the numbers below 100 whose remainder by its index is zero, by their last digit. */
const produce: Task = async ({ output, taskIndex, subpartitionCount, progress }) => {
  for (let number = 0; number < 100; number++) {
    if (number % 4 !== taskIndex) continue
    await output?.emitRecord(Buffer.from(String(number)), number % subpartitionCount)
  }
  progress(100)
  return taskIndex
}

const collect: Task = async (context) => {
  const numbers: number[] = []
  await readAll(context, (text) => numbers.push(Number(text)))
  return numbers.sort((a, b) => a - b)
}

async function readAll({ gate }: TaskContext, visit: (text: string) => void): Promise<void> {
  if (gate === undefined) return
  for await (const batch of gate) {
    if (batch.kind === 'records') for (const record of batch) visit(Buffer.from(record).toString())
    batch.recycle()
  }
}

interface World {
  readonly shuffle: MemoryShuffle
  readonly processes: LocalTaskProcesses
  readonly master: JobMaster
}

function setUp(
  tasks: TaskRegistry,
  settings: {
    readonly limits?: Partial<JobLimits & PoolLimits>
    readonly stages?: JobPlan['stages']
    readonly processCount?: number
    readonly slotsPerProcess?: number
  } = {},
): World {
  const shuffle = new MemoryShuffle()
  const processes = new LocalTaskProcesses(shuffle, tasks)
  const master = new JobMaster(
    {
      world: { clock: realClock, random: realRandom },
      logger: silentLogger,
      shuffleMaster: shuffle.master(),
      startTaskProcess: processes.start,
      cluster: { managerUrl: 'http://unused', clusterId: 'test' },
      processCount: settings.processCount ?? 2,
      slotsPerProcess: settings.slotsPerProcess ?? 2,
      spillDirectory: '/unused',
      limits: { retryDelayMinMs: 0, retryDelayMaxMs: 1, ...settings.limits },
    },
    {
      name: 'test',
      tasksModule: 'unused',
      memory: divideTaskMemory(1 << 20),
      recordBytesMax: 1 << 20,
      stages: settings.stages ?? [
        { name: 'map', task: 'produce', taskCount: 4, inputOf: () => null },
        { name: 'reduce', task: 'collect', taskCount: 3, inputOf: () => null },
      ],
    },
  )
  return { shuffle, processes, master }
}

const expected = [0, 1, 2].map((remainder) =>
  Array.from({ length: 100 }, (_, number) => number).filter((number) => number % 3 === remainder),
)

function expectClean({ shuffle, processes }: World): void {
  expect(shuffle.jobCount).toBe(0)
  expect(shuffle.partitionCount).toBe(0)
  expect(processes.living).toEqual([])
}

function attempts({ summary }: JobResult): readonly number[] {
  return summary.stages.map((stage) => stage.attempts)
}

describe('a job master', () => {
  test('runs every task once, gives each consumer its share, and leaves nothing', async () => {
    const world = setUp({ produce, collect })
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(attempts(result)).toEqual([4, 3])
    expect(result.summary).toMatchObject({
      producerAttempts: 4,
      consumerAttempts: 3,
      processRestarts: 0,
    })
    expect(result.summary.stages[0]).toMatchObject({
      progressBytes: 400,
      committed: { recordCount: 100 },
    })
    expectClean(world)
  })

  test('passes the results of a stage to the inputs of the next', async () => {
    const seen: unknown[] = []
    const world = setUp(
      { produce, look: (context) => readAll(context, () => undefined).then(() => context.input) },
      {
        stages: [
          { name: 'map', task: 'produce', taskCount: 4, inputOf: () => null },
          {
            name: 'look',
            task: 'look',
            taskCount: 2,
            inputOf: (index, results) => {
              seen.push(results)
              return [index, ...results]
            },
          },
        ],
      },
    )
    const { results } = await world.master.run()
    expect(results).toEqual([
      [0, 0, 1, 2, 3],
      [1, 0, 1, 2, 3],
    ])
    expect(seen).toHaveLength(2)
  })

  test('runs stages in a row, each reading the one before', async () => {
    const passOn: Task = async (context) => {
      const waits: Promise<void>[] = []
      await readAll(context, (text) => {
        const wait = context.output?.emitRecord(Buffer.from(`${text}0`), 0)
        if (wait !== undefined) waits.push(wait)
      })
      await Promise.all(waits)
      return null
    }
    const world = setUp(
      { produce, passOn, collect },
      {
        stages: [
          { name: 'first', task: 'produce', taskCount: 4, inputOf: () => null },
          { name: 'second', task: 'passOn', taskCount: 3, inputOf: () => null },
          { name: 'third', task: 'collect', taskCount: 1, inputOf: () => null },
        ],
      },
    )
    const { results, summary } = await world.master.run()
    expect(results).toEqual([Array.from({ length: 100 }, (_, number) => number * 10)])
    expect(summary).toMatchObject({ producerAttempts: 7, consumerAttempts: 4 })
  })

  test('produces a partition again when a consumer does not find it', async () => {
    const world = setUp({ produce, collect })
    let isLost = false
    world.shuffle.onRead = ({ inputs }) => {
      if (isLost) return
      isLost = true
      const key = inputs[2]?.descriptor.key
      if (key !== undefined) world.shuffle.lose(key, false)
    }
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(result.summary.producerAttempts).toBe(5)
    expect(result.summary.stages[0]?.lost).toBe(1)
    expectClean(world)
  })

  test('produces again what the shuffle master tells it is lost, before and after it is read', async () => {
    const world = setUp({ produce, collect }, { processCount: 1, slotsPerProcess: 1 })
    const keys = new Set<PartitionKey>()
    world.shuffle.onRead = ({ inputs }) => {
      // Once for each consumer: three losses in all.
      if (keys.size >= 3) return
      const key = inputs[keys.size]?.descriptor.key
      if (key === undefined) return
      keys.add(key)
      world.shuffle.lose(key, true)
    }
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(result.summary.producerAttempts).toBe(7)
    expectClean(world)
  })

  test('does not produce again what nobody needs any more', async () => {
    const lost: PartitionKey[] = []
    const world = setUp({
      produce,
      collect: async (context) => {
        const result = await collect(context)
        // The last consumer has all it needs when everything is lost.
        const { committedKeys } = world.shuffle
        if (context.taskIndex === 2 && lost.length === 0) {
          for (const descriptor of world.shuffle.allocated) lost.push(descriptor.key)
          expect(committedKeys).toHaveLength(4)
        }
        return result
      },
    })
    const result = await world.master.run()
    for (const key of lost) world.shuffle.lose(key, true)
    expect(result.summary.producerAttempts).toBe(4)
  })

  test('ignores a loss of an attempt that has been replaced, and of another job', async () => {
    const world = setUp({ produce, collect })
    let first: PartitionKey | undefined
    world.shuffle.onRead = ({ inputs }) => {
      const key = inputs[0]?.descriptor.key
      if (key === undefined) return
      if (first === undefined) {
        first = key
        world.shuffle.lose(key, true)
      } else if (key.attemptId !== first.attemptId) {
        world.shuffle.lose(first, true)
        world.shuffle.lose({ ...first, jobId: parseJobId('another') }, true)
      }
    }
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(result.summary.producerAttempts).toBe(5)
  })

  test('starts the tasks of a process that ended again in a new one', async () => {
    let hasEnded = false
    const world = setUp({
      produce: async (context) => {
        if (context.taskIndex === 1 && !hasEnded) {
          hasEnded = true
          world.processes.living[0]?.end('it was ended by SIGKILL')
        }
        return await produce(context)
      },
      collect,
    })
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(result.summary.processRestarts).toBe(1)
    expect(world.processes.started).toBe(3)
    expectClean(world)
  })

  test('gives up when processes keep ending', async () => {
    const world: World = setUp(
      {
        produce: () => {
          for (const process of world.processes.living) process.end('it exited with 1')
          return Promise.resolve(null)
        },
        collect,
      },
      { limits: { restartsMax: 3, attemptsMax: 100 } },
    )
    await expect(world.master.run()).rejects.toThrow('is gone: it exited with 1')
    expectClean(world)
  })

  test('tries a failed task again, with a new attempt', async () => {
    const seen: number[] = []
    const world = setUp({
      produce: async (context) => {
        if (context.taskIndex === 3) {
          seen.push(context.attempt)
          if (context.attempt < 3) {
            throw new Error('wrapped', { cause: new ShuffleError('WRITE_INTERRUPTED', 'cut') })
          }
        }
        return await produce(context)
      },
      collect,
    })
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(seen).toEqual([1, 2, 3])
    expect(result.summary.producerAttempts).toBe(6)
    expect(world.shuffle.released.size).toBeGreaterThanOrEqual(2)
  })

  test('fails with the last error when a task has used up its attempts', async () => {
    const world = setUp(
      { produce: () => Promise.reject(new ShuffleError('NO_SPACE', 'the disk is full')), collect },
      { limits: { attemptsMax: 3 } },
    )
    await expect(world.master.run()).rejects.toMatchObject({
      code: 'NO_SPACE',
      message: expect.stringMatching(/failed 3 times; the last time: the disk is full/) as string,
    })
    expectClean(world)
  })

  test('lets a consumer be cancelled by as many losses as there are: they are no failures of it', async () => {
    const world = setUp(
      { produce, collect },
      { processCount: 1, slotsPerProcess: 1, limits: { attemptsMax: 3 } },
    )
    const lost = new Set<number>()
    world.shuffle.onRead = ({ inputs }) => {
      const index = lost.size
      if (index >= inputs.length) return
      lost.add(index)
      const key = inputs.find(({ descriptor }) => descriptor.key.partitionIndex === index)
      if (key !== undefined) world.shuffle.lose(key.descriptor.key, true)
    }
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(lost.size).toBe(4)
    expect(attempts(result)).toEqual([8, 7])
    expectClean(world)
  })

  test('fails at once, with code and fields, on an error that no attempt can mend', async () => {
    const error = new ShuffleError('INVALID_ARGUMENT', 'the line is too long', {
      fields: { line: 7, path: '/x' },
    })
    const world = setUp({ produce: () => Promise.reject(error), collect })
    await expect(world.master.run()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'the line is too long',
      fields: { line: 7, path: '/x', stage: 'map', attempt: 1 },
    })
    expectClean(world)
  })

  test('waits for a place while there is no worker or manager, without a failed attempt', async () => {
    const world = setUp({ produce, collect })
    const refusals = ['NO_WORKER', 'NO_MANAGER', 'BUSY'] as const
    let asked = 0
    const waits: (string | undefined)[] = []
    world.shuffle.onAllocate = () => {
      waits.push(world.master.waitsFor?.code)
      const code = refusals[asked++]
      if (code !== undefined) throw new ShuffleError(code, 'not now')
    }
    const result = await world.master.run()
    expect(result.results).toEqual(expected)
    expect(result.summary.producerAttempts).toBe(4)
    expect(waits).toContain('NO_MANAGER')
    expect(world.master.waitsFor).toBeUndefined()
  })

  test('fails when there is no place for too long', async () => {
    const world = setUp(
      { produce, collect },
      { limits: { allocationTimeoutMs: 0, attemptsMax: 2 } },
    )
    world.shuffle.onAllocate = () => {
      throw new ShuffleError('NO_WORKER', 'none is registered')
    }
    await expect(world.master.run()).rejects.toMatchObject({ code: 'NO_WORKER' })
    expectClean(world)
  })

  test('does not commit for a task that has not read all of its input', async () => {
    const world = setUp(
      { produce, collect: () => Promise.resolve(null) },
      { limits: { attemptsMax: 2 } },
    )
    await expect(world.master.run()).rejects.toMatchObject({ code: 'COUNT_MISMATCH' })
  })

  test('names a task that is not registered', async () => {
    const world = setUp({ collect })
    await expect(world.master.run()).rejects.toThrow('no task is registered as produce')
  })

  test('ends everything when it is cancelled', async () => {
    const controller = new AbortController()
    const world = setUp({
      produce: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error)
          })
          controller.abort()
        }),
      collect,
    })
    await expect(world.master.run(controller.signal)).rejects.toMatchObject({ code: 'CANCELLED' })
    expectClean(world)
  })

  test('ends at once when it is cancelled while it registers', async () => {
    const controller = new AbortController()
    const world = setUp({ produce, collect })
    const registration = deferred<undefined>()
    world.shuffle.registering = registration.promise
    const running = world.master.run(controller.signal)
    controller.abort()
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(world.processes.sent).toEqual([])
    expectClean(world)
    registration.reject(new ShuffleError('NO_MANAGER', 'the manager is away'))
  })

  test('tells each process the partitions of a stage once, not with every task', async () => {
    const world = setUp({ produce, collect }, { processCount: 2, slotsPerProcess: 1 })
    await world.master.run()
    const kinds = world.processes.sent.map((message) => message.kind)
    expect(kinds.filter((kind) => kind === 'start')).toHaveLength(7)
    expect(kinds.filter((kind) => kind === 'inputs').length).toBeLessThanOrEqual(2)
  })
})
