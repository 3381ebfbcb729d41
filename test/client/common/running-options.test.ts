import { beforeEach, describe, expect, test } from 'vitest'
import { makeLogger, type ProcessLogger } from '../../../client/common/log.ts'
import { declareOptions, parseOptions } from '../../../client/common/options.ts'
import { RunningOptions } from '../../../client/common/running-options.ts'

const declaration = declareOptions(
  'worker',
  {
    logLevel: {
      name: 'log-level',
      type: 'enum',
      choices: ['debug', 'info', 'warn', 'error'],
      default: 'info',
      reloadable: true,
      about: 'Level.',
    },
    drainMs: { name: 'drain', type: 'duration', default: '30s', reloadable: true, about: 'Time.' },
    graceMs: { name: 'grace', type: 'duration', default: '90s', about: 'More time.' },
    directory: { name: 'directory', type: 'path', about: 'Not set.' },
  },
  [(values) => (values.drainMs < values.graceMs ? undefined : 'drain must be less than grace')],
)

let yamlText = ''
let logger: ProcessLogger
const read = () => parseOptions(declaration, { yamlText, yamlPath: 'file' })

function make() {
  const parsed = read()
  return {
    values: parsed.values,
    running: new RunningOptions({ declaration, parsed, read, logger }),
  }
}

beforeEach(() => {
  yamlText = ''
  const nothing = () => undefined
  const lines = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: nothing }
  logger = makeLogger(lines as never, {}, { level: 'info', problems: [] })
})

describe('the options of a running process', () => {
  test('show each value, where it came from, and whether it can be read again', () => {
    yamlText = 'remote-shuffle.worker.grace: 2m'
    expect(make().running.shownOptions()).toEqual([
      { name: 'log-level', value: 'info', source: 'default', isReloadable: true },
      { name: 'drain', value: '30s', source: 'default', isReloadable: true },
      {
        name: 'grace',
        value: '2m',
        source: 'file: remote-shuffle.worker.grace',
        isReloadable: false,
      },
      { name: 'directory', value: '', source: 'default', isReloadable: false },
    ])
  })

  test('read again, change in the one object that all parts of the process have', () => {
    const { running, values } = make()
    yamlText = 'remote-shuffle.worker: { drain: 40s, grace: 2m, log-level: debug }'
    expect(running.reload()).toEqual({
      changed: [
        { name: 'log-level', before: 'info', after: 'debug' },
        { name: 'drain', before: '30s', after: '40s' },
      ],
      needRestart: [{ name: 'grace', before: '90s', after: '2m' }],
    })
    expect(values).toMatchObject({ drainMs: 40_000, graceMs: 90_000 })
    expect(logger.level).toBe('debug')
    expect(running.shownOptions()[1]?.source).toBe('file: remote-shuffle.worker.drain')
    expect(running.reload()).toMatchObject({ changed: [], needRestart: [{ name: 'grace' }] })
  })

  test('that are wrong change nothing, also when only the mixture is wrong', () => {
    const { running, values } = make()
    yamlText = 'remote-shuffle.worker: { drain: 40s, grade: 2m }'
    expect(() => running.reload()).toThrow(/grade/)
    yamlText = 'remote-shuffle.worker: { drain: 2m, grace: 3m }'
    expect(() => running.reload()).toThrow(/restart the process instead: drain must be less/)
    expect(values.drainMs).toBe(30_000)
  })

  test('leave a level alone that was set while it runs', () => {
    const { running } = make()
    running.logLevel = 'error'
    yamlText = 'remote-shuffle.worker.drain: 40s'
    running.reload()
    expect(logger.level).toBe('error')
  })
})
