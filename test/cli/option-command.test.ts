import { expect, test } from 'vitest'

import { optionCommand } from '../../cli/option-command.ts'
import { declareOptions } from '../../client/common/options.ts'
import { commandContext } from '../support/command-context.ts'

const seen: unknown[] = []
const command = optionCommand({
  declaration: declareOptions('sort', {
    input: { name: 'input', type: 'path', required: true, about: 'In.' },
    maps: { name: 'maps', type: 'integer', default: 8, about: 'Maps.' },
  }),
  usage: 'sluice sort',
  about: 'Sorts.',
  positionalsMax: 1,
  run: ({ values, positionals }) => {
    seen.push(values, positionals)
    return Promise.resolve(5)
  },
})

test('a command gets its options from flags, environment and file, paths being the caller’s', async () => {
  const context = commandContext({
    environment: { SLUICE_SORT_MAPS: '3' },
    readFile: () => 'remote-shuffle.sort.input: from-file',
  })
  expect(await command.run(['--config', 'c.yaml', 'x'], context)).toBe(5)
  expect(seen).toEqual([{ input: '/work-of-the-caller/from-file', maps: 3 }, ['x']])
})

test('--print-config prints instead of running', async () => {
  seen.length = 0
  const context = commandContext()
  expect(await command.run(['--input=/a', '--print-config'], context)).toBe(0)
  expect(context.printed.join('')).toMatch(/input: "\/a" # --input/)
  expect(seen).toEqual([])
})

test('a bad option is refused by name', async () => {
  await expect(command.run(['--input=/a', '--map=1'], commandContext())).rejects.toThrow(
    'unknown option --map; did you mean --maps?',
  )
})

test('the help has the options and the common flags', () => {
  expect(command.help()).toMatch(/--maps N[\s\S]*--print-config/)
})
