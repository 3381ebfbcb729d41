import { describe, expect, test } from 'vitest'

import { realClock } from '../../client/common/clock.ts'
import type { SetUpMessage, StartMessage, ToTaskProcess } from '../../runtime/task-messages.ts'
import { TaskProcessPool, type PoolLimits } from '../../runtime/task-process-pool.ts'
import type { TaskProcessHandler } from '../../runtime/task-process.ts'

class FakeProcess {
  readonly sent: ToTaskProcess[] = []
  readonly handler: TaskProcessHandler
  readonly pid: number
  killed = 0
  constructor(handler: TaskProcessHandler, pid: number) {
    this.handler = handler
    this.pid = pid
  }
  send(message: ToTaskProcess): void {
    this.sent.push(message)
  }
  disconnect(): void {
    this.kill()
  }
  kill(): void {
    this.killed += 1
    this.handler.onExit('it was ended by SIGKILL')
  }
}

const setUp = { kind: 'set-up' } as unknown as SetUpMessage
const start = { kind: 'start', run: 1 } as unknown as StartMessage

function poolOf(settings: { count?: number; slots?: number; limits?: Partial<PoolLimits> } = {}) {
  const processes: FakeProcess[] = []
  const told: string[] = []
  const pool = new TaskProcessPool({
    clock: realClock,
    startTaskProcess: (handler) => {
      const process = new FakeProcess(handler, 100 + processes.length)
      processes.push(process)
      return process
    },
    processCount: settings.count ?? 2,
    slotsPerProcess: settings.slots ?? 2,
    setUp,
    limits: { restartsMax: 1, ...settings.limits },
    handler: {
      onFinished: (message) => told.push(`finished ${message.run}`),
      onFailed: (run, error) => told.push(`failed ${run}: ${error.message}`),
      onSlot: () => told.push('slot'),
      onBroken: (error) => told.push(`broken: ${error.message}`),
    },
  })
  pool.start()
  const at = (index: number): FakeProcess => {
    const process = processes[index]
    if (process === undefined) throw new Error(`no process ${index}`)
    return process
  }
  const ready = (index: number) => {
    at(index).handler.onMessage({ kind: 'ready' })
  }
  return { pool, processes, told, at, ready }
}

describe('a pool of task processes', () => {
  test('sets each process up and has no slot before one is ready', () => {
    const { pool, at, ready, told } = poolOf()
    expect([at(0).sent, at(1).sent]).toEqual([[setUp], [setUp]])
    expect(pool.takeSlot(1)).toBeUndefined()
    ready(1)
    expect(told).toEqual(['slot'])
    expect(pool.takeSlot(1)?.run).toBe(1)
  })

  test('spreads runs over processes, up to their slots', () => {
    const { pool, at, ready } = poolOf()
    ready(0)
    ready(1)
    for (let run = 1; run <= 4; run++) pool.takeSlot(run)?.start({ ...start, run })
    expect(pool.takeSlot(5)).toBeUndefined()
    expect([at(0).sent.length, at(1).sent.length]).toEqual([3, 3])
    at(0).handler.onMessage({
      kind: 'failed',
      run: 1,
      error: { message: 'x', fields: {}, stack: '' },
    })
    expect(pool.takeSlot(5)?.run).toBe(5)
  })

  test('a slot that is given back is free', () => {
    const { pool, ready } = poolOf({ count: 1, slots: 1 })
    ready(0)
    pool.takeSlot(1)?.giveBack()
    expect(pool.takeSlot(2)).toBeDefined()
  })

  test('passes inputs once for each version', () => {
    const { pool, at, ready } = poolOf({ count: 1 })
    ready(0)
    const message = { kind: 'inputs', stage: 0, descriptors: [] } as const
    const slot = pool.takeSlot(1)
    slot?.setInputs(1, message)
    slot?.setInputs(1, message)
    pool.takeSlot(2)?.setInputs(1, message)
    slot?.setInputs(2, message)
    expect(at(0).sent.filter(({ kind }) => kind === 'inputs')).toHaveLength(2)
  })

  test('remembers progress while a run is under way, and the peak of each process', () => {
    const { pool, at, ready } = poolOf({ count: 1 })
    ready(0)
    pool.takeSlot(1)
    at(0).handler.onMessage({ kind: 'heartbeat', progress: { 1: 10, 9: 5 }, peakMemoryBytes: 77 })
    expect([pool.progressOf(1), pool.progressOf(9)]).toEqual([10, 0])
    at(0).handler.onMessage({
      kind: 'finished',
      run: 1,
      result: null,
      committed: undefined,
      progress: 10,
      peakMemoryBytes: 80,
    })
    expect(pool.progressOf(1)).toBe(0)
    expect([...pool.peakMemoryBytes]).toEqual([[100, 80]])
  })

  test('fails what ran in a process that ended, and starts another in its place', () => {
    const { pool, at, ready, told, processes } = poolOf({ count: 1 })
    ready(0)
    pool.takeSlot(1)
    pool.takeSlot(2)
    at(0).handler.onExit('it exited with 1')
    expect(told.slice(1)).toEqual([
      'failed 1: task process 100 is gone: it exited with 1',
      'failed 2: task process 100 is gone: it exited with 1',
    ])
    expect([processes.length, pool.restarts]).toEqual([2, 1])
    at(1).handler.onExit('it exited with 1')
    expect(told.at(-1)).toMatch(/^broken/)
    expect(processes).toHaveLength(2)
  })

  test('kills a process that is silent for too long', async () => {
    const { at, told, ready } = poolOf({ count: 1, limits: { silenceMaxMs: 1, restartsMax: 0 } })
    ready(0)
    await expect.poll(() => told.at(-1)).toMatch(/^broken: .*SIGKILL/)
    expect(at(0).killed).toBe(1)
  })

  test('closing asks every process, and kills those that do not end', async () => {
    const { pool, at, told } = poolOf({ limits: { closeTimeoutMs: 1 } })
    const closing = pool.close()
    expect(at(0).sent.at(-1)).toEqual({ kind: 'close' })
    at(0).handler.onExit('it exited with 0')
    await closing
    expect([at(0).killed, at(1).killed]).toEqual([0, 1])
    expect(told).toEqual([])
    await pool.close()
  })
})
