import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Command } from '../../cli/command.ts'
import { drainCommand, excludeCommand, undrainCommand } from '../../cli/service-state-commands.ts'
import { commandContext, type TestContext } from '../support/command-context.ts'
import { HttpAnswers, toldWorker } from '../support/http-answers.ts'

const call = 'PUT /v1/workers/worker-1/service'
let manager: HttpAnswers
let context: TestContext
beforeEach(async () => {
  context = commandContext()
  manager = await HttpAnswers.start({
    'GET /v1/workers': { workers: [toldWorker()] },
    [call]: (body: string) => {
      const { state, reason = '' } = JSON.parse(body) as { state: string; reason?: string }
      return toldWorker({ service: { state, reason, number: 1 }, isServiceTold: false })
    },
  })
})
afterEach(() => {
  manager.close()
})

async function run(command: Command, ...argv: string[]): Promise<string> {
  expect(await command.run(['--manager', manager.url, ...argv], context)).toBe(0)
  return context.printed.join('')
}

const asked = () =>
  manager.asked.filter((one) => one.call === call).map(({ body }) => JSON.parse(body) as unknown)

test('drain, exclude and undrain ask for the state, with the reason', async () => {
  expect(await run(drainCommand, 'worker', '--reason', 'new disks')).toBe('worker-1 drains\n')
  await run(excludeCommand, 'w.example:9710', '--lost', '--reason=gone')
  await run(undrainCommand, 'worker-1')
  expect(asked()).toEqual([
    { state: 'draining', reason: 'new disks' },
    { state: 'excluded', reason: 'gone', isLost: true },
    { state: 'serving' },
  ])
  expect(context.printed.join('')).toMatch(
    /is excluded, its data counts as lost\n.*back in service/,
  )
})

test('each prints the worker as JSON for programs', async () => {
  const printed = JSON.parse(await run(drainCommand, 'worker-1', '--json')) as unknown
  expect(printed).toMatchObject({ workerId: 'worker-1', service: { state: 'draining' } })
})

test('a worker that is not there is told later, and the command says so', async () => {
  manager.answers[call] = toldWorker({ state: 'suspect', isServiceTold: false })
  expect(await run(excludeCommand, 'worker-1')).toMatch(/it is suspect and does not know it yet/)
})

test('with --wait it waits until the worker knows, nothing is written and nothing is kept', async () => {
  const steps = [
    { isServiceTold: false },
    { openWrites: 2, partitionCount: 3, byteCount: 2048 },
    { partitionCount: 1 },
    { state: 'registering' },
    {},
  ]
  manager.answers['GET /v1/workers'] = () => ({ workers: [toldWorker(steps[0])] })
  const waiting = run(drainCommand, 'worker-1', '--wait')
  manager.answers['GET /v1/workers'] = () => ({ workers: [toldWorker(steps.shift())] })
  expect(await waiting).toBe('worker-1 is empty and may be taken away\n')
  expect(steps).toEqual([])
}, 30_000)

test('a wait that takes too long, or that the worker does not outlive, is an error', async () => {
  manager.answers[call] = toldWorker({ partitionCount: 3, byteCount: 2048 })
  const argv = ['--manager', manager.url, 'worker-1', '--wait']
  await expect(drainCommand.run([...argv, '--wait-timeout=0ms'], context)).rejects.toThrow(
    /0 open writes, 3 partitions \(2\.0 KiB\)/,
  )
  let looks = 0
  manager.answers['GET /v1/workers'] = () => ({
    workers: [toldWorker({ state: looks++ === 0 ? 'alive' : 'lost' })],
  })
  await expect(drainCommand.run(argv, context)).rejects.toThrow(/lost while it drained/)
})

test('a worker must be named', async () => {
  await expect(drainCommand.run(['--manager', manager.url], context)).rejects.toThrow(
    /WORKER is missing; usage: sluice drain WORKER/,
  )
})
