import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'

const logModule = fileURLToPath(new URL('../../../client/common/log.ts', import.meta.url))

const script = `
  import { createLogger } from ${JSON.stringify(logModule)}
  const logger = createLogger({ level: 'info', role: 'worker' })
  logger.debug({}, 'not said')
  logger.info({ workerId: 'w1' }, 'started')
  logger.child({ jobId: 'j1' }).error({ code: 'BUSY' }, 'failed')`

test('lines are JSON on standard error, with role, ids and level, from the level on', () => {
  const ended = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  expect(ended.stdout).toBe('')
  const lines = ended.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(lines).toMatchObject([
    { level: 30, role: 'worker', workerId: 'w1', msg: 'started' },
    { level: 50, role: 'worker', jobId: 'j1', code: 'BUSY', msg: 'failed' },
  ])
})

test('the silent logger says nothing, nor do its children', () => {
  const child = silentLogger.child({})
  for (const level of ['debug', 'info', 'warn', 'error'] as const) child[level]({}, 'x')
  expect(child).toBe(silentLogger)
})
