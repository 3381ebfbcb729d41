import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { supportBundleCommand } from '../../cli/support-bundle-command.ts'
import { commandContext } from '../support/command-context.ts'
import { HttpAnswers, toldWorker } from '../support/http-answers.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

test('a name under which nothing can be written is refused before anybody is asked', async () => {
  const http = await HttpAnswers.start({})
  await withTemporaryDirectory(async (directory) => {
    const output = join(directory, 'none', 'x.tar.gz')
    const running = supportBundleCommand.run(
      ['--manager', http.url, '--output', output],
      commandContext(),
    )
    await expect(running).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(
        `no file can be made in ${join(directory, 'none')}`,
      ) as string,
    })
    expect(http.asked).toEqual([])
  })
  http.close()
})

test('the pages of all processes are in it, who does not answer is named, nobody else can read it', async () => {
  const http = await HttpAnswers.start({ 'GET /metrics': 'some_metric 1\n' })
  http.answers['GET /v1/workers'] = {
    workers: [
      toldWorker({ host: '127.0.0.1', httpPort: http.port }),
      toldWorker({ workerId: 'worker-2', host: '127.0.0.1', httpPort: 9, state: 'suspect' }),
      toldWorker({ workerId: 'worker-3', host: '127.0.0.1', httpPort: 9 }),
    ],
  }
  await withTemporaryDirectory(async (directory) => {
    const output = join(directory, 'x.tar.gz')
    const context = commandContext()
    const argv = ['--manager', http.url, '--output', output, '--workers-max=2']
    expect(await supportBundleCommand.run(argv, context)).toBe(0)
    expect(context.printed.join('')).toMatch(/wrote .*x\.tar\.gz .*2 things are missing/)
    expect(context.noted).toEqual(['asked 2 of 2 workers\n'])
    expect(statSync(output).mode & 0o777).toBe(0o600)
    execFileSync('tar', ['-xzf', output], { cwd: directory })
    const read = (name: string) => readFileSync(join(directory, name), 'utf8')
    expect(read('manager/metrics.txt')).toBe('some_metric 1\n')
    expect(JSON.parse(read('manager/workers.json'))).toHaveProperty('workers')
    expect(JSON.parse(read('workers/worker-1/status.json'))).toEqual({})
    // The silent one comes first, so it is the one without trouble that is left out.
    expect(read('errors.txt')).toMatch(/worker-2: \/v1\/process: .*ECONNREFUSED/)
    expect(read('errors.txt')).toContain('1 more workers were not asked')
    await expect(supportBundleCommand.run(argv, context)).rejects.toThrow(/exists; give another/)
  })
  http.close()
})
