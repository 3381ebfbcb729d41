import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { makeLogger, silentLogger, type LogFields } from '../../../client/common/log.ts'

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

/** Lines as texts. */
function lines(said: string[]) {
  const write = (level: string) => (fields: LogFields, message: string) =>
    said.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const made = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => made,
  }
  return made
}

test('the level of a process is changed for all its loggers at once', () => {
  const said: string[] = []
  const logger = makeLogger(lines(said) as never, {}, { level: 'warn', problems: [] })
  const child = logger.child({ directory: '/d' })
  child.info({}, 'one')
  logger.level = 'debug'
  child.debug({}, 'two')
  logger.level = 'error'
  child.warn({}, 'three')
  child.error({}, 'four')
  expect(said.map((line) => line.split(' ')[1])).toEqual(['two', 'four'])
})

test('the last warnings and errors are kept, whatever the level, with the fields of both', () => {
  const logger = makeLogger(lines([]) as never, {}, { level: 'error', problems: [] })
  const child = logger.child({ directory: '/d' })
  for (let count = 0; count < 300; count++) child.warn({ count }, 'w')
  child.info({}, 'no problem')
  child.error({ error: new Error('bad'), long: 'x'.repeat(10_000) }, 'e')
  expect(logger.problems).toHaveLength(200)
  expect(logger.problems.at(-1)).toMatchObject({
    level: 'error',
    message: 'e',
    fields: { directory: '"/d"', error: 'Error: bad' },
  })
  expect(logger.problems.at(-1)?.fields['long']?.length).toBe(500)
})
