import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { divideTaskMemory } from '../../runtime/job-plan.ts'
import type { FromTaskProcess, SetUpMessage } from '../../runtime/task-messages.ts'
import { forkTaskProcess, type TaskProcess } from '../../runtime/task-process.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true, force: true })
})
const tasksModule = path.join(directory, 'tasks.mjs')
writeFileSync(
  tasksModule,
  `export const tasks = { double: async ({ input }) => input * 2, die: async () => process.exit(7) }`,
)

function setUpMessage(settings: Partial<SetUpMessage> = {}): SetUpMessage {
  return {
    kind: 'set-up',
    cluster: { managerUrl: 'http://127.0.0.1:1', clusterId: 'none' },
    tasksModule,
    memory: divideTaskMemory(8 << 20),
    recordBytesMax: 8 << 20,
    spillDirectory: directory,
    removeWhenOrphaned: [],
    ...settings,
  }
}

interface Running {
  readonly process: TaskProcess
  readonly messages: FromTaskProcess[]
  readonly exits: string[]
}

function run(message: SetUpMessage): Running {
  const [messages, exits]: [FromTaskProcess[], string[]] = [[], []]
  const process = forkTaskProcess({
    onMessage: (received) => messages.push(received),
    onExit: (reason) => exits.push(reason),
  })
  process.send(message)
  return { process, messages, exits }
}

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 60_000, interval: 10 }).toBe(true)
}

function start(task: string, input: number) {
  return {
    kind: 'start' as const,
    run: 1,
    task,
    stageName: 's',
    taskIndex: 0,
    attempt: 1,
    input,
    output: undefined,
    inputStage: undefined,
  }
}

describe('a task process', { timeout: 120_000 }, () => {
  test('runs the tasks of a module and ends when it is closed', async () => {
    const { process, messages, exits } = run(setUpMessage())
    await until(() => messages.some(({ kind }) => kind === 'ready'))
    process.send(start('double', 21))
    await until(() => messages.some(({ kind }) => kind === 'finished'))
    const finished = messages.find(({ kind }) => kind === 'finished')
    expect(finished).toMatchObject({ run: 1, result: 42 })
    process.send({ kind: 'close' })
    await until(() => exits.length > 0)
    expect(exits).toEqual(['it exited with 0'])
  })

  test('is noticed when it dies, by itself or killed', async () => {
    const dying = run(setUpMessage())
    const killed = run(setUpMessage())
    await until(() => [dying, killed].every(({ messages }) => messages.length > 0))
    dying.process.send(start('die', 0))
    killed.process.kill()
    await until(() => [dying, killed].every(({ exits }) => exits.length > 0))
    expect(dying.exits).toEqual(['it exited with 7'])
    expect(killed.exits).toEqual(['it was ended by SIGKILL'])
    killed.process.send({ kind: 'close' })
  })

  test('ends when it can not be set up', async () => {
    const { exits } = run(setUpMessage({ tasksModule: path.join(directory, 'missing.mjs') }))
    await until(() => exits.length > 0)
    expect(exits).toEqual(['it exited with 1'])
  })

  test('ends when its parent is gone, and removes what it was told to', async () => {
    const left = path.join(directory, 'left')
    writeFileSync(left, '')
    const { process, messages, exits } = run(setUpMessage({ removeWhenOrphaned: [left] }))
    await until(() => messages.some(({ kind }) => kind === 'ready'))
    process.disconnect()
    await until(() => exits.length > 0)
    expect(existsSync(left)).toBe(false)
  })
})
