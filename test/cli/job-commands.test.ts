import { expect, test } from 'vitest'

import { sortCommand, sortOptions, wordCountCommand } from '../../cli/job-commands.ts'
import { optionValues } from '../../client/common/options.ts'
import { commandContext } from '../support/command-context.ts'

test.each([
  ['sort', sortCommand],
  ['word-count', wordCountCommand],
])(
  '%s names what is missing, unknown or not there before it starts anything',
  async (_name, command) => {
    const run = (...argv: string[]) => command.run(argv, commandContext())
    await expect(run()).rejects.toThrow('--input is missing\n--output is missing')
    const files = ['--input=missing', '--output=/tmp/out']
    await expect(run(...files, '--reducers=2')).rejects.toThrow('did you mean --reduces?')
    await expect(run(...files, '--task-memory=1kb')).rejects.toThrow('from 2mb to 2gb')
    await expect(run(...files, '--manager=localhost')).rejects.toThrow('an address such as')
    await expect(run(...files)).rejects.toThrow('/work-of-the-caller/missing')
  },
)

test('a task has 64 MiB unless told otherwise', () => {
  const values = optionValues(sortOptions, { input: '/a', output: '/b' })
  expect(values).toMatchObject({ taskMemoryBytes: 64 * 1024 ** 2, slots: 1, manager: undefined })
})
