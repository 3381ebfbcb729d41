import { describe, expect, test } from 'vitest'

import type { Command } from '../../cli/command.ts'
import { exitCodeOfSignal, overview, runCommand } from '../../cli/run-command.ts'
import { ShuffleError } from '../../client/index.ts'
import { commandContext } from '../support/command-context.ts'

const ran: (readonly string[])[] = []

function entry(run: Command['run'] = () => Promise.resolve(0)) {
  const command: Command = {
    usage: 'sluice x',
    help: () => 'the help\n',
    run: (argv, context) => {
      ran.push(argv)
      return run(argv, context)
    },
  }
  return { about: 'Does something.', load: () => Promise.resolve(command) }
}

const commands = {
  'main-job': entry(() => Promise.resolve(3)),
  status: entry(),
  broken: entry(() => Promise.reject(new Error('a fault of ours'))),
  wrong: entry(() => Promise.reject(new ShuffleError('INVALID_ARGUMENT', 'unknown option --x'))),
  refused: entry(() =>
    Promise.reject(
      new ShuffleError('NO_SPACE', 'no room', { fields: { jobId: 'j', none: undefined } }),
    ),
  ),
}

async function run(argv: readonly string[], settings = {}) {
  const context = commandContext(settings)
  ran.length = 0
  const code = await runCommand({ argv, commands, version: '1.2.3' }, context)
  return { code, printed: context.printed.join(''), noted: context.noted.join('') }
}

describe('the command line', () => {
  test('runs the command that is named, with the rest of the arguments', async () => {
    expect((await run(['status', '--json'])).code).toBe(0)
    expect(ran).toEqual([['--json']])
  })

  test('runs the main job when none is named', async () => {
    expect((await run([])).code).toBe(3)
    expect((await run(['--input-size=1mb'])).code).toBe(3)
    expect(ran).toEqual([['--input-size=1mb']])
  })

  test('help for a command that there is not says so', async () => {
    const { code, noted } = await run(['help', 'stauts'])
    expect(code).toBe(2)
    expect(noted).toContain('unknown command stauts; did you mean status?')
  })

  test.each([[['--help']], [['help']], [['-h']]])('%j prints the commands', async (argv) => {
    const { code, printed } = await run(argv)
    expect([code, printed]).toEqual([0, overview(commands)])
    expect(printed).toMatch(/status +Does something\./)
  })

  test.each([[['status', '--help']], [['help', 'status']]])(
    '%j prints the help of a command',
    async (argv) => {
      expect(await run(argv)).toMatchObject({ code: 0, printed: 'the help\n' })
      expect(ran).toEqual([])
    },
  )

  test.each([[['--version']], [['status', '--version']]])('%j prints the version', async (argv) => {
    expect((await run(argv)).printed).toBe('sluice 1.2.3\n')
  })

  test('refuses an unknown command, with what was probably meant', async () => {
    const { code, noted } = await run(['stauts'])
    expect(code).toBe(2)
    expect(noted).toMatch(/unknown command stauts; did you mean status\?/)
    expect((await run(['toString'])).noted).toMatch(/unknown command toString\nCommands: main-job/)
  })

  test('tells an error with its code and fields, a wrong usage with its text alone', async () => {
    expect(await run(['wrong'])).toMatchObject({ code: 2, noted: 'sluice: unknown option --x\n' })
    expect(await run(['refused'])).toMatchObject({
      code: 1,
      noted: 'sluice: NO_SPACE: no room (jobId=j)\n',
    })
    const broken = await run(['broken'])
    expect(broken.code).toBe(1)
    expect(broken.noted).toMatch(/a fault of ours\n\s+at /)
  })

  test('an error after a signal is the end that the signal asked for', async () => {
    const signal = AbortSignal.abort('SIGTERM')
    expect(await run(['broken'], { signal })).toMatchObject({ code: 143, noted: '' })
    expect(exitCodeOfSignal(AbortSignal.abort('SIGINT'))).toBe(130)
    expect(exitCodeOfSignal(AbortSignal.abort('other'))).toBe(1)
  })
})
