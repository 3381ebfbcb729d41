import { describe, expect, test } from 'vitest'

import { ShuffleError } from '../../client/index.ts'
import { heartbeatIntervalMs, TaskHost } from '../../runtime/task-host.ts'
import type { FromTaskProcess, StartMessage } from '../../runtime/task-messages.ts'
import type { TaskRegistry } from '../../runtime/task.ts'
import { taskBench, type TaskBench } from '../support/task-context.ts'

/** A clock whose timers a test fires by hand. */
class HandClock {
  readonly timers: { readonly delayMs: number; readonly callback: () => void }[] = []
  nowMs = () => 0
  wallMs = () => 0
  setTimer(delayMs: number, callback: () => void) {
    const timer = { delayMs, callback }
    this.timers.push(timer)
    return {
      cancel: () => {
        this.timers.splice(this.timers.indexOf(timer), 1)
      },
    }
  }
  setImmediate(callback: () => void) {
    return this.setTimer(0, callback)
  }
}

interface HostBench {
  readonly host: TaskHost
  readonly bench: TaskBench
  readonly clock: HandClock
  readonly sent: FromTaskProcess[]
  readonly collections: () => number
  start(task: string, settings?: Partial<StartMessage>): void
  /** Resolves with the outcome of the one run. */
  readonly outcome: Promise<FromTaskProcess>
}

async function hostOf(tasks: TaskRegistry): Promise<HostBench> {
  const bench = await taskBench(2)
  const clock = new HandClock()
  const sent: FromTaskProcess[] = []
  let collected = 0
  let settle: (message: FromTaskProcess) => void = () => undefined
  const outcome = new Promise<FromTaskProcess>((resolve) => (settle = resolve))
  const host = new TaskHost({
    clock,
    environment: bench.shuffle.environment(),
    tasks,
    settings: {
      memory: { outputBytes: 1 << 20, gateBytes: 1 << 20, ownBytes: 1 << 20 },
      spillDirectory: '/spill',
    },
    name: '77',
    send: (message) => {
      sent.push(message)
      if (message.kind === 'finished' || message.kind === 'failed') settle(message)
    },
    peakMemoryBytes: () => 123,
    collectGarbage: () => (collected += 1),
  })
  const start = (task: string, settings: Partial<StartMessage> = {}) => {
    host.start({
      kind: 'start',
      run: 5,
      task,
      stageName: 'map',
      taskIndex: 1,
      attempt: 2,
      input: 'in',
      output: undefined,
      inputStage: undefined,
      ...settings,
    })
  }
  return { host, bench, clock, sent, collections: () => collected, start, outcome }
}

describe('a task host', () => {
  test('runs a task with what it was told, commits its output and tells the result', async () => {
    const { start, outcome, bench, collections } = await hostOf({
      work: async (context) => {
        await context.output?.emitRecord(Buffer.from('record'), 1)
        context.progress(42)
        return [
          context.input,
          context.taskIndex,
          context.attempt,
          context.subpartitionCount,
          context.spillName,
        ]
      },
    })
    start('work', { output: bench.output })
    expect(await outcome).toEqual({
      kind: 'finished',
      run: 5,
      result: ['in', 1, 2, 2, '77-5'],
      committed: { recordCount: 1, uncompressedBytes: 10, storedBytes: 10 },
      progress: 42,
      peakMemoryBytes: 123,
    })
    expect(bench.shuffle.partitionCount).toBe(1)
    expect(collections()).toBe(1)
  })

  test('collects short-lived memory now and then while a task works, and at its end', async () => {
    const { start, outcome, collections } = await hostOf({
      work: ({ progress }) => {
        for (let bytes = 0; bytes <= 20 << 20; bytes += 1 << 20) progress(bytes)
        return Promise.resolve(null)
      },
    })
    start('work')
    await outcome
    expect(collections()).toBe(2)
  })

  test('tells an error with its code, and commits nothing', async () => {
    const { start, outcome, bench } = await hostOf({
      work: () => Promise.reject(new ShuffleError('NO_SPACE', 'full', { fields: { a: 1 } })),
    })
    start('work', { output: bench.output })
    expect(await outcome).toMatchObject({
      kind: 'failed',
      run: 5,
      error: { code: 'NO_SPACE', message: 'full', fields: { a: 1 } },
    })
    expect(bench.shuffle.partitionCount).toBe(0)
  })

  test('tells an error for a task that it does not know, also of a name that every object has', async () => {
    const { start, outcome } = await hostOf({})
    start('toString')
    expect(await outcome).toMatchObject({ error: { code: 'INVALID_ARGUMENT' } })
  })

  test('tells an error for a consumer whose inputs it was not told', async () => {
    const { start, outcome } = await hostOf({ work: () => Promise.resolve(null) })
    start('work', { inputStage: 3 })
    expect(await outcome).toMatchObject({
      error: { message: expect.stringMatching(/inputs/) as string },
    })
  })

  test('a cancelled task that ends all the same has failed', async () => {
    const { host, start, outcome } = await hostOf({
      work: async ({ signal }) => {
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve)
        })
        return 'done'
      },
    })
    start('work')
    host.cancel(99)
    host.cancel(5)
    expect(await outcome).toMatchObject({ kind: 'failed', error: { code: 'CANCELLED' } })
  })

  test('heartbeats with the progress of what runs, until it is closed', async () => {
    let finish: () => void = () => undefined
    const { host, clock, sent, start, outcome } = await hostOf({
      work: (context) => {
        context.progress(7)
        return new Promise((resolve) => {
          finish = () => {
            resolve(null)
          }
        })
      },
    })
    start('work')
    await Promise.resolve()
    const [timer] = clock.timers.splice(0)
    expect(timer?.delayMs).toBe(heartbeatIntervalMs)
    timer?.callback()
    expect(sent).toEqual([{ kind: 'heartbeat', progress: { 5: 7 }, peakMemoryBytes: 123 }])
    finish()
    await outcome
    await host.close()
    expect(clock.timers).toEqual([])
  })

  test('closing cancels what runs and waits for it', async () => {
    const { host, start, outcome } = await hostOf({
      work: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error)
          })
        }),
    })
    start('work')
    await host.close()
    expect(await outcome).toMatchObject({ kind: 'failed', error: { code: 'CANCELLED' } })
  })
})
