import { once } from 'node:events'
import { createServer } from 'node:net'
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

test('ports that are taken are named with the option that takes others', async () => {
  // By this server, or by whoever was faster.
  const other = createServer().listen(9700, '127.0.0.1')
  await once(other, 'listening').catch(() => undefined)
  await expect(localCommand.run(['--workers=1'], commandContext())).rejects.toThrow(
    /127\.0\.0\.1:9700 is in use: .*\n.*--free-ports/,
  )
  other.close()
}, 120_000)

test('a worker that is killed does not end the others, and how to start it again is said', async () => {
  const controller = new AbortController()
  const notes: string[] = []
  const context = commandContext({
    signal: controller.signal,
    print: (text) => {
      const { workers } = JSON.parse(text) as { workers: readonly { pid: number }[] }
      process.kill(workers[0]?.pid ?? 0, 'SIGKILL')
    },
    note: (text) => {
      notes.push(text)
      if (text.includes('has ended')) controller.abort('SIGINT')
    },
  })
  const options = ['--workers=2', '--free-ports', '--json', '--worker-memory=96mb']
  expect(await localCommand.run(options, context)).toBe(130)
  expect(notes.join('')).toMatch(
    /worker \S+ \(pid \d+\) has ended; the others go on.*\n {2}sluice worker --data-port=\d+ --http-port=\d+ --data-directories=\S+worker-0 --manager=http\S+ --cluster-id=sluice .*--memory=\S+\n/,
  )
  expect(notes.join('')).not.toMatch(/manager has ended/)
}, 120_000)

test('a manager that is killed ends the workers, and none of them is called lost', async () => {
  const notes: string[] = []
  const context = commandContext({
    print: (text) => {
      process.kill((JSON.parse(text) as { managerPid: number }).managerPid, 'SIGKILL')
    },
    note: (text) => {
      notes.push(text)
    },
  })
  expect(await localCommand.run(['--workers=2', '--free-ports', '--json'], context)).toBe(1)
  const said = notes.filter((text) => text.startsWith('sluice local:'))
  expect(said).toEqual(['sluice local: the manager has ended; the workers are stopped\n'])
}, 120_000)
