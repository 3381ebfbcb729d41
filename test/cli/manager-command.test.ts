import { expect, test } from 'vitest'
import { clusterCommandOptions, managerCommand } from '../../cli/manager-command.ts'
import { commandContext } from '../support/command-context.ts'

const command = managerCommand({
  declaration: clusterCommandOptions,
  usage: 'sluice try A [B]',
  about: 'Tries.',
  argumentNames: ['A', '[B]'],
  run: ({ args, values, token, context }) => {
    context.print(JSON.stringify({ args, manager: values.manager, token }))
    return Promise.resolve(undefined)
  },
})

test('a command gets its arguments, its options and the secret', async () => {
  const context = commandContext({ readFile: () => 'secret\n' })
  expect(await command.run(['a', 'b', '--token-file', '/t'], context)).toBe(0)
  expect(JSON.parse(context.printed.join(''))).toEqual({
    args: ['a', 'b'],
    manager: 'http://127.0.0.1:9700',
    token: 'secret',
  })
})

test('a command that is told to end does not wait for a manager that is silent', async () => {
  const controller = new AbortController()
  const asking = managerCommand({
    declaration: clusterCommandOptions,
    usage: 'sluice try',
    about: 'Tries.',
    run: () => {
      controller.abort('SIGINT')
      return new Promise(() => undefined)
    },
  })
  const context = commandContext({ signal: controller.signal })
  await expect(asking.run([], context)).rejects.toMatchObject({
    code: 'CANCELLED',
  })
})

test('an address that asks for TLS is refused: there is none', async () => {
  await expect(
    command.run(['a', '--manager', 'https://m:9700'], commandContext()),
  ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('an argument in brackets may be left out, others may not, and no more are taken', async () => {
  expect(await command.run(['a'], commandContext())).toBe(0)
  await expect(command.run([], commandContext())).rejects.toThrow(/A is missing/)
  await expect(command.run(['a', 'b', 'c'], commandContext())).rejects.toThrow(
    /unexpected argument/,
  )
})
