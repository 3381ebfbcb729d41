import { afterEach, beforeEach, expect, test } from 'vitest'
import { logLevelCommand, reloadCommand } from '../../cli/settings-commands.ts'
import { commandContext } from '../support/command-context.ts'
import { HttpAnswers, toldWorker } from '../support/http-answers.ts'

/** One server is manager and worker. */
let http: HttpAnswers
beforeEach(async () => {
  http = await HttpAnswers.start({
    'PUT /v1/process/log-level': (body: string) => JSON.parse(body) as unknown,
  })
  const here = toldWorker({ host: '127.0.0.1', httpPort: http.port })
  http.answers['GET /v1/workers'] = { workers: [here] }
})
afterEach(() => {
  http.close()
})

test('the level of all processes, or of one, is changed', async () => {
  const context = commandContext()
  expect(await logLevelCommand.run(['debug', '--manager', http.url], context)).toBe(0)
  expect(await logLevelCommand.run(['warn', 'worker-1', '--manager', http.url], context)).toBe(0)
  expect(context.printed.join('')).toBe(
    'manager: logs from level debug on\nworker-1: logs from level debug on\nworker-1: logs from level warn on\n',
  )
  await expect(logLevelCommand.run(['loud', '--manager', http.url], context)).rejects.toThrow(
    /LEVEL must be one of debug, info, warn, error/,
  )
})

test('a reload says what is in effect and what waits for a restart', async () => {
  http.answers['POST /v1/process/reload'] = {
    changed: [{ name: 'drain-timeout', before: '30s', after: '1m' }],
    needRestart: [{ name: 'memory', before: '64mb', after: '' }],
  }
  const context = commandContext()
  expect(await reloadCommand.run(['workers', '--manager', http.url], context)).toBe(0)
  expect(context.printed.join('')).toBe(
    'worker-1: drain-timeout is now 1m (was 30s)\nworker-1: memory stays 64mb: it needs a restart to become not set\n',
  )
  http.answers['POST /v1/process/reload'] = { changed: [], needRestart: [] }
  const json = commandContext()
  expect(await reloadCommand.run(['manager', '--json', '--manager', http.url], json)).toBe(0)
  expect(JSON.parse(json.printed.join(''))).toEqual({ manager: { changed: [], needRestart: [] } })
})

test('who refuses or does not answer is named, and the others are asked', async () => {
  http.answers['POST /v1/process/reload'] = {
    error: { code: 'INVALID_ARGUMENT', message: '--memory is wrong' },
  }
  const context = commandContext()
  expect(await reloadCommand.run(['--manager', http.url], context)).toBe(1)
  expect(context.noted).toEqual(['manager: --memory is wrong\n', 'worker-1: --memory is wrong\n'])
})
