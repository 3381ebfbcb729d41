import { describe, expect, expectTypeOf, test } from 'vitest'

import { isShuffleError } from '../../../client/common/errors.ts'
import {
  declareOptions,
  optionValues,
  parseOptions,
  type OptionInput,
  type OptionValues,
} from '../../../client/common/options.ts'

const declaration = declareOptions(
  'worker',
  {
    dataPort: { name: 'data-port', type: 'port', default: 9710, about: 'Port.' },
    heartbeatMs: { name: 'heartbeat', type: 'duration', default: '5s', about: 'Beat.' },
    silenceMs: { name: 'silence', type: 'duration', default: '15s', about: 'Silence.' },
    memoryBytes: { name: 'memory', type: 'bytes', default: '64mb', about: 'Memory.' },
    kind: { name: 'kind', type: 'enum', choices: ['ssd', 'hdd'], default: 'ssd', about: 'Kind.' },
    directories: {
      name: 'directories',
      type: 'list',
      of: 'path',
      default: ['./data'],
      about: 'D.',
    },
    tokenFile: { name: 'token-file', type: 'path', about: 'Token.' },
    sync: { name: 'sync', type: 'boolean', default: false, about: 'Sync.' },
  },
  [
    (values) =>
      values.silenceMs > values.heartbeatMs
        ? undefined
        : '--silence must be longer than --heartbeat',
    (values) => (values.dataPort === 9711 ? '--data-port is taken' : undefined),
  ],
)

function parse(input: OptionInput) {
  return parseOptions(declaration, input).values
}

function complaint(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (isShuffleError(error, 'INVALID_ARGUMENT')) return error.message
    throw error
  }
  return 'nothing was refused'
}

test('without any source every value is its default, with its unit applied', () => {
  expect(parse({})).toEqual({
    dataPort: 9710,
    heartbeatMs: 5000,
    silenceMs: 15_000,
    memoryBytes: 64 * 1024 ** 2,
    kind: 'ssd',
    directories: ['./data'],
    tokenFile: undefined,
    sync: false,
  })
})

test('values have the types of their kinds', () => {
  type Values = OptionValues<typeof declaration>
  expectTypeOf<Values['dataPort']>().toEqualTypeOf<number>()
  expectTypeOf<Values['kind']>().toEqualTypeOf<'ssd' | 'hdd'>()
  expectTypeOf<Values['directories']>().toEqualTypeOf<readonly string[]>()
  expectTypeOf<Values['tokenFile']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Values['sync']>().toEqualTypeOf<boolean>()
})

describe('sources', () => {
  const yamlText = 'remote-shuffle:\n  worker:\n    data-port: 1\n    kind: hdd\n    memory: 1mb\n'
  const environment = { SLUICE_WORKER_DATA_PORT: '2', SLUICE_WORKER_KIND: 'ssd' }

  test('a flag wins over the environment, that over the file, that over the default', () => {
    expect(parse({ yamlText })).toMatchObject({ dataPort: 1, kind: 'hdd', heartbeatMs: 5000 })
    expect(parse({ yamlText, environment })).toMatchObject({ dataPort: 2, kind: 'ssd' })
    const argv = ['--data-port', '3']
    expect(parse({ yamlText, environment, argv })).toMatchObject({
      dataPort: 3,
      kind: 'ssd',
      memoryBytes: 1024 ** 2,
    })
  })

  test('say where each value came from', () => {
    const { sources } = parseOptions(declaration, {
      argv: ['--data-port=3'],
      environment: { SLUICE_WORKER_KIND: 'hdd' },
      yamlText,
      yamlPath: 'sluice.yaml',
    })
    expect(sources.dataPort).toEqual({ kind: 'flag', where: '--data-port' })
    expect(sources.kind).toEqual({ kind: 'environment', where: 'SLUICE_WORKER_KIND' })
    expect(sources.memoryBytes).toEqual({
      kind: 'file',
      where: 'sluice.yaml: remote-shuffle.worker.memory',
    })
    expect(sources.sync).toEqual({ kind: 'default', where: 'default' })
  })

  test('relative paths of every source and of defaults are resolved', () => {
    const values = parse({ argv: ['--token-file', 'token'], workingDirectory: '/w' })
    expect(values).toMatchObject({ tokenFile: '/w/token', directories: ['/w/data'] })
  })

  test('a bad value of a source that loses is refused too', () => {
    const argv = ['--data-port', '3']
    const text = complaint(() => parse({ argv, environment: { SLUICE_WORKER_DATA_PORT: 'x' } }))
    expect(text).toMatch(/^SLUICE_WORKER_DATA_PORT must be a port/)
  })

  test('every problem of every source is named, a line each', () => {
    const text = complaint(() =>
      parse({
        argv: ['--data-prot', '1', '--memory', '1x'],
        environment: { SLUICE_WORKER_KIMD: 'ssd' },
        yamlText: 'remote-shuffle.worker.hearbeat: 5s',
        yamlPath: 'a.yaml',
      }),
    )
    expect(text.split('\n')).toEqual([
      'unknown option --data-prot; did you mean --data-port?',
      'unknown environment variable SLUICE_WORKER_KIMD; did you mean SLUICE_WORKER_KIND?',
      'a.yaml: unknown key remote-shuffle.worker.hearbeat; did you mean remote-shuffle.worker.heartbeat?',
      expect.stringMatching(/^--memory must be a size such as 64mb .* got "1x"$/),
    ])
  })
})

describe('what does not fit together', () => {
  test('is refused with the text of each check that fails', () => {
    const argv = ['--silence', '1s', '--data-port', '9711']
    expect(complaint(() => parse({ argv })).split('\n')).toEqual([
      '--silence must be longer than --heartbeat',
      '--data-port is taken',
    ])
  })

  test('is not looked for while single values are wrong', () => {
    expect(complaint(() => parse({ argv: ['--silence', '1s', '--memory', 'x'] }))).not.toMatch(
      /silence/,
    )
  })
})

test('a required option that is missing is named, and one that is bad is not called missing', () => {
  const required = declareOptions('sort', {
    input: { name: 'input', type: 'path', required: true, about: 'In.' },
    maps: { name: 'maps', type: 'integer', required: true, about: 'Maps.' },
  })
  expectTypeOf<OptionValues<typeof required>['maps']>().toEqualTypeOf<number>()
  const problems = complaint(() => parseOptions(required, { argv: ['--maps=x'] })).split('\n')
  expect(problems).toHaveLength(2)
  expect(problems).toContain('--input is missing')
  expect(problems[0]).not.toMatch(/--maps is missing/)
})

test('arguments without a flag are returned up to the number allowed, and refused beyond', () => {
  expect(
    parseOptions(declaration, { argv: ['a', '--sync', 'b'], positionalsMax: 2 }).positionals,
  ).toEqual(['a', 'b'])
  expect(complaint(() => parse({ argv: ['a'] }))).toBe('unexpected argument "a"')
})

describe('a declaration is refused at once', () => {
  test.each<[string, () => unknown]>([
    [
      'whose name is not kebab-case',
      () => declareOptions('worker', { a: { name: 'A_b', type: 'boolean', about: 'A.' } }),
    ],
    [
      'that uses a name twice',
      () =>
        declareOptions('worker', {
          a: { name: 'same', type: 'boolean', about: 'A.' },
          b: { name: 'same', type: 'boolean', about: 'B.' },
        }),
    ],
    [
      'that says nothing',
      () => declareOptions('worker', { a: { name: 'a', type: 'boolean', about: ' ' } }),
    ],
    [
      'whose default is out of its limits',
      () =>
        declareOptions('worker', {
          a: { name: 'a', type: 'integer', max: 5, default: 6, about: 'A.' },
        }),
    ],
    [
      'whose default is no value of its kind',
      () =>
        declareOptions('worker', {
          aMs: { name: 'a', type: 'duration', default: '5', about: 'A.' },
        }),
    ],
    [
      'whose duration is not named for its unit',
      () => declareOptions('worker', { a: { name: 'a', type: 'duration', about: 'A.' } }),
    ],
    [
      'whose size is not named for its unit',
      () => declareOptions('worker', { a: { name: 'a', type: 'bytes', about: 'A.' } }),
    ],
    [
      'that is required and has a default',
      () =>
        declareOptions('worker', {
          a: { name: 'a', type: 'boolean', required: true, default: true, about: 'A.' },
        }),
    ],
  ])('%s', (_what, declare) => {
    expect(complaint(declare)).toMatch(/^the declaration of worker\./)
  })
})

describe('values made in code', () => {
  test('are the defaults with differences, in the units of code', () => {
    const values = optionValues(declaration, {
      heartbeatMs: 10,
      memoryBytes: 1000,
      directories: ['/x'],
    })
    expect(values).toMatchObject({
      heartbeatMs: 10,
      memoryBytes: 1000,
      directories: ['/x'],
      dataPort: 9710,
    })
  })

  test('are checked as given ones are', () => {
    expect(complaint(() => optionValues(declaration, { dataPort: 70_000 }))).toMatch(
      /^dataPort must be a port/,
    )
    expect(complaint(() => optionValues(declaration, { silenceMs: 1 }))).toMatch(/longer than/)
    const unknown = { nonsense: 1 } as object
    expect(complaint(() => optionValues(declaration, unknown))).toBe('unknown option nonsense')
  })
})

test('an option of one call is a flag and nothing else', () => {
  const declaration = declareOptions('command', {
    wait: { name: 'wait', type: 'boolean', default: false, flagOnly: true, about: 'Waits.' },
  })
  expect(parseOptions(declaration, { argv: ['--wait'] }).values.wait).toBe(true)
  expect(() => parseOptions(declaration, { environment: { SLUICE_COMMAND_WAIT: 'true' } })).toThrow(
    /SLUICE_COMMAND_WAIT/,
  )
  expect(() =>
    parseOptions(declaration, { yamlText: 'remote-shuffle.command.wait: true' }),
  ).toThrow(/remote-shuffle\.command\.wait/)
})
