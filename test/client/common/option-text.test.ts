import { expect, test } from 'vitest'

import { helpText, optionsReference, printConfig } from '../../../client/common/option-text.ts'
import { declareOptions, parseOptions } from '../../../client/common/options.ts'

const declaration = declareOptions('worker', {
  dataPort: { name: 'data-port', type: 'port', default: 9710, about: 'Port of the data plane.' },
  memoryBytes: { name: 'memory', type: 'bytes', default: '64mb', min: '8mb', about: 'Memory.' },
  directories: { name: 'data-directories', type: 'list', of: 'path', about: 'Where | what.' },
  host: { name: 'host', type: 'host', default: 'localhost', about: 'Name.' },
  sync: { name: 'sync', type: 'boolean', default: false, about: 'Whether to sync.' },
  input: {
    name: 'a-name-longer-than-the-column-is',
    type: 'path',
    required: true,
    about: 'Input.',
  },
})

test('help says what a command does, and each option with limits and default', () => {
  const text = helpText(declaration, {
    usage: 'sluice worker',
    about: 'Runs a worker.',
    examples: [{ about: 'The plain one', command: 'sluice worker --sync' }],
    common: [['--help', 'This.']],
  })
  expect(text).toMatch(/^Usage: sluice worker\n\nRuns a worker\.\n/)
  expect(text).toMatch(/--data-port PORT +Port of the data plane\. \(a port from 0 to 65535/)
  expect(text).toMatch(/default\s+9710\)/)
  expect(text).toMatch(/--memory SIZE/)
  expect(text).toMatch(/--sync +Whether to sync\. \(default false\)/)
  expect(text).toMatch(/required\)/)
  expect(text).toMatch(/SLUICE_WORKER_DATA_PORT/)
  expect(text).toMatch(/remote-shuffle\.worker\.data-port/)
  expect(text).toMatch(/ {2}# The plain one\n {2}sluice worker --sync/)
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
})

test('help of a command without options has no empty parts', () => {
  const text = helpText(declareOptions('command', {}), { usage: 'sluice x', about: 'X.' })
  expect(text).toBe('Usage: sluice x\n\nX.\n')
})

test('the printed configuration names each source and reads back as the same values', () => {
  const parsed = parseOptions(declaration, {
    argv: [
      '--data-port',
      '1',
      '--data-directories',
      'a,b',
      '--a-name-longer-than-the-column-is',
      '/in: # x',
    ],
    environment: { SLUICE_WORKER_SYNC: 'true' },
  })
  const text = printConfig(declaration, parsed)
  expect(text).toMatch(/data-port: 1 # --data-port/)
  expect(text).toMatch(/memory: 64mb # default/)
  expect(text).toMatch(/sync: true # SLUICE_WORKER_SYNC/)
  const again = parseOptions(declaration, { yamlText: text, yamlPath: 'printed' })
  expect(again.values).toEqual(parsed.values)
})

test('an option without value is printed as a comment', () => {
  const optional = declareOptions('command', {
    token: { name: 'token', type: 'path', about: 'T.' },
  })
  expect(printConfig(optional, parseOptions(optional, {}))).toMatch(/# token: not set/)
})

test('the reference has a row for each option, and no cell breaks the table', () => {
  const text = optionsReference([declaration])
  const rows = text.split('\n').filter((line) => line.startsWith('| `--'))
  expect(rows).toHaveLength(6)
  for (const row of rows) expect(row.replaceAll('\\|', '').match(/\|/g)).toHaveLength(7)
  expect(text).toMatch(/^## worker/)
  expect(text).toMatch(/`SLUICE_WORKER_DATA_PORT` \| `remote-shuffle\.worker\.data-port`/)
  expect(text).toMatch(/Where \\\| what\./)
})
