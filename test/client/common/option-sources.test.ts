import { describe, expect, test } from 'vitest'

import {
  environmentName,
  flagName,
  readEnvironment,
  readFlags,
  readYaml,
  yamlKey,
  type SourceReading,
} from '../../../client/common/option-sources.ts'
import type { OptionDeclaration } from '../../../client/common/option-kinds.ts'

const options = {
  dataPort: { name: 'data-port', type: 'port', about: 'P.' },
  sync: { name: 'sync', type: 'boolean', about: 'S.' },
  directories: { name: 'directories', type: 'list', about: 'D.' },
} as const satisfies Record<string, OptionDeclaration>

const declared = { section: 'word-count', options }
const sections = ['word-count', 'manager']

function texts({ given }: SourceReading): Record<string, readonly string[]> {
  return Object.fromEntries([...given].map(([key, value]) => [key, value.texts]))
}

test('one name makes flag, environment variable and YAML key', () => {
  const { dataPort } = options
  expect(flagName(dataPort)).toBe('--data-port')
  expect(environmentName('word-count', dataPort)).toBe('SLUICE_WORD_COUNT_DATA_PORT')
  expect(yamlKey('word-count', dataPort)).toBe('remote-shuffle.word-count.data-port')
})

describe('flags', () => {
  test.each<[string[], Record<string, string[]>, string[]]>([
    [['--data-port', '1'], { dataPort: ['1'] }, []],
    [['--data-port=1'], { dataPort: ['1'] }, []],
    [['--data-port=a=b'], { dataPort: ['a=b'] }, []],
    [['--data-port='], { dataPort: [''] }, []],
    [['--data-port', '-1'], { dataPort: ['-1'] }, []],
    [['-data-port', '1'], { dataPort: ['1'] }, []],
    [['--sync'], { sync: ['true'] }, []],
    [['--sync', 'false'], { sync: ['false'] }, []],
    [['--sync=false'], { sync: ['false'] }, []],
    [['--no-sync'], { sync: ['false'] }, []],
    [['--sync', 'job'], { sync: ['true'] }, ['job']],
    [['--directories', 'a', '--directories', 'b'], { directories: ['a', 'b'] }, []],
    [['x', '--', '--sync', '-y'], {}, ['x', '--sync', '-y']],
    [['-'], {}, ['-']],
    [[], {}, []],
  ])('%j', (argv, expected, positionals) => {
    const reading = readFlags(declared, argv, 10)
    expect([texts(reading), reading.positionals, reading.problems]).toEqual([
      expected,
      positionals,
      [],
    ])
  })

  test.each([
    [['--data-prot', '1'], 'unknown option --data-prot; did you mean --data-port?'],
    [
      ['--nothing-like-it=5'],
      'unknown option --nothing-like-it; allowed: --data-port, --sync, --directories',
    ],
    [['--data-port'], '--data-port needs a value'],
    [['--data-port', '--sync'], '--data-port needs a value'],
    [['--no-data-port'], 'unknown option --no-data-port; did you mean --data-port?'],
  ])('%j is refused', (argv, problem) => {
    expect(readFlags(declared, argv, 0).problems).toEqual([problem])
  })

  test('the value of an unknown flag is no complaint of its own, the next flag is read', () => {
    const reading = readFlags(declared, ['--what', 'value', '--sync'], 0)
    expect(reading.problems).toHaveLength(1)
    expect(texts(reading)).toEqual({ sync: ['true'] })
  })
})

describe('environment', () => {
  test('reads the variables of its section and no others', () => {
    const reading = readEnvironment(declared, {
      SLUICE_WORD_COUNT_DATA_PORT: '1',
      SLUICE_MANAGER_DATA_PORT: '2',
      SLUICE_CONFIG: 'x',
      PATH: '/bin',
      SLUICE_WORD_COUNT_SYNC: undefined,
    })
    expect([texts(reading), reading.problems]).toEqual([{ dataPort: ['1'] }, []])
  })

  test('refuses an unknown variable of its section by name', () => {
    expect(readEnvironment(declared, { SLUICE_WORD_COUNT_SINC: 'true' }).problems).toEqual([
      'unknown environment variable SLUICE_WORD_COUNT_SINC; did you mean SLUICE_WORD_COUNT_SYNC?',
    ])
  })

  test.each([
    'SLUICE_WORD_COUNT_SERVICE_HOST',
    'SLUICE_WORD_COUNT_SERVICE_PORT',
    'SLUICE_WORD_COUNT_SERVICE_PORT_HTTP',
    'SLUICE_WORD_COUNT_PORT',
    'SLUICE_WORD_COUNT_PORT_9710_TCP',
    'SLUICE_WORD_COUNT_PORT_9710_TCP_ADDR',
  ])('lets pass what Kubernetes sets for a service of our name: %s', (name) => {
    expect(readEnvironment(declared, { [name]: 'tcp://10.0.0.1:9710' }).problems).toEqual([])
  })
})

describe('YAML', () => {
  const read = (text: string | undefined) => readYaml(declared, text, 'a.yaml', sections)

  test.each<[string | undefined, Record<string, string[]>]>([
    [undefined, {}],
    ['', {}],
    ['# nothing\n', {}],
    [
      'remote-shuffle:\n  word-count:\n    data-port: 1\n    sync: true\n',
      { dataPort: ['1'], sync: ['true'] },
    ],
    ['remote-shuffle.word-count.data-port: 1', { dataPort: ['1'] }],
    ['remote-shuffle:\n  word-count.data-port: "1"\n', { dataPort: ['1'] }],
    ['remote-shuffle:\n  word-count:\n    directories: [a, b]\n', { directories: ['a', 'b'] }],
    ['remote-shuffle:\n  word-count:\n    directories:\n      - a\n', { directories: ['a'] }],
    ['remote-shuffle:\n  word-count:\n    directories: a,b\n', { directories: ['a,b'] }],
    ['remote-shuffle:\n  manager:\n    anything: 5\n  word-count:\n', {}],
    ['remote-shuffle:\n', {}],
  ])('reads %j', (text, expected) => {
    const reading = read(text)
    expect([texts(reading), reading.problems]).toEqual([expected, []])
  })

  test.each([
    [
      'remote-shuffle:\n  word-count:\n    data-prot: 1\n',
      /a\.yaml: unknown key remote-shuffle\.word-count\.data-prot; did you mean .*data-port/,
    ],
    [
      'remote-shuffle:\n  word-cuont:\n    sync: true\n',
      /unknown key remote-shuffle\.word-cuont\.sync; did you mean/,
    ],
    [
      'remote-shufle:\n  word-count:\n    sync: true\n',
      /unknown key remote-shufle\.word-count\.sync/,
    ],
    ['other: 1', /unknown key other; allowed: /],
    ['remote-shuffle.word-count.sync:', /sync must be a text, a number/],
    ['remote-shuffle.word-count.sync: [[true]]', /sync must be a text/],
    ['- a\n- b\n', /must be a mapping/],
    ['just text', /must be a mapping/],
    ['a: [1\n', /a\.yaml: .*line/],
    ['a: *nobody\n', /a\.yaml: .*nobody/],
    ['remote-shuffle: &x\n  manager: *x\n', /a\.yaml: .*contains itself/],
    ['a: 1\na: 2\n', /a\.yaml: .*unique/i],
    [`x: "${'y'.repeat(1024 * 1024)}"`, /larger than/],
  ])('refuses %j', (text, problem) => {
    const { problems } = read(text)
    expect(problems[0]).toMatch(problem)
  })
})
