import { expect, test } from 'vitest'

import { localCommand } from '../../cli/local-command.ts'
import { commandContext } from '../support/command-context.ts'

test.each([
  [['--json'], /^\{"role":"local","url":"http:.*"workers":\[\{"workerId":"/],
  [[], /In another terminal:\n {2}sluice status --manager http/],
])(
  'a cluster runs until a signal, and says how to use it: %j',
  async (argv, expected) => {
    const controller = new AbortController()
    const printed: string[] = []
    const context = commandContext({
      signal: controller.signal,
      print: (text) => {
        printed.push(text)
        controller.abort('SIGINT')
      },
    })
    expect(await localCommand.run(['--workers=1', '--free-ports', ...argv], context)).toBe(130)
    expect(printed.join('')).toMatch(expected)
  },
  120_000,
)
