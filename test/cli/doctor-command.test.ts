import { afterEach, beforeEach, expect, test } from 'vitest'
import { doctorCommand } from '../../cli/doctor-command.ts'
import { commandContext } from '../support/command-context.ts'
import { HttpAnswers, toldCluster } from '../support/http-answers.ts'

let http: HttpAnswers
beforeEach(async () => {
  http = await HttpAnswers.start({
    'GET /v1/cluster': toldCluster(),
    'GET /v1/process': { role: 'manager', wallMs: Date.now(), problems: [] },
    'GET /v1/workers': { workers: [] },
  })
})
afterEach(() => {
  http.close()
})

function run(yaml: string, ...argv: string[]) {
  const context = commandContext({ readFile: () => yaml })
  return { context, code: doctorCommand.run(['--manager', http.url, ...argv], context) }
}

test('a cluster that is well ends with 0, and one that is not with 1', async () => {
  const well = run('')
  expect(await well.code).toBe(0)
  expect(well.context.printed.join('')).toMatch(/0 warnings, 0 failures/)
  http.answers['GET /v1/cluster'] = toldCluster({ isReady: false, reason: 'r' })
  const ill = run('')
  expect(await ill.code).toBe(1)
  expect(ill.context.printed.join('')).toMatch(/FAIL {2}manager: allocates nothing: r/)
})

test('only the sections that a configuration has are looked at, nested or dotted', async () => {
  const { code, context } = run(
    'remote-shuffle:\n  command.json: true\nremote-shuffle.manager.port: 0\n',
    '--offline',
    '--file=/etc/x.yaml',
  )
  expect(await code).toBe(0)
  const text = context.printed.join('')
  expect(text).toMatch(/configuration \/etc\/x\.yaml: has sections: command, manager/)
  expect(text).toMatch(/manager: port: any that is free/)
  expect(text).not.toMatch(/worker/)
  expect(http.asked).toEqual([])
})

test('options that are wrong, and a file that can not be read, are failures', async () => {
  const wrong = run('remote-shuffle.worker.memory: lots', '--offline', '--file=/x', '--json')
  expect(await wrong.code).toBe(1)
  expect(JSON.parse(wrong.context.printed.join(''))).toContainEqual(
    expect.objectContaining({ status: 'failure', what: 'worker: options' }),
  )
  const context = commandContext()
  expect(await doctorCommand.run(['--offline', '--file=/none'], context)).toBe(1)
  expect(context.printed.join('')).toMatch(/FAIL {2}configuration \/none: ENOENT/)
})
