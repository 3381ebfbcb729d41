import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { ChildService } from '../../cli/child-service.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
afterAll(() => {
  rmSync(directory, { recursive: true, force: true })
})

function managerArguments(name: string): readonly string[] {
  const state = `--state-directory=${path.join(directory, name, 'manager')}`
  return ['manager', '--port=0', state, '--exit-with-parent', '--log-level=warn']
}

describe('a service as a child', { timeout: 120_000 }, () => {
  test('is ready with its address, stops when asked, and removes its temporary directory', async () => {
    const temporaryDirectory = path.join(directory, 'a', 'manager')
    const service = await ChildService.start({
      argv: managerArguments('a'),
      temporaryDirectory,
      startTimeoutMs: 60_000,
    })
    expect(service.ready).toMatchObject({
      role: 'manager',
      url: expect.stringMatching(/^http:/) as string,
    })
    expect(existsSync(temporaryDirectory)).toBe(true)
    await service.stop()
    expect(existsSync(path.join(directory, 'a'))).toBe(false)
  })

  test('that ends at its start is told of with what it said', async () => {
    const starting = ChildService.start({ argv: ['manager', '--prot=0'], startTimeoutMs: 60_000 })
    await expect(starting).rejects.toThrow(
      /the manager ended at its start \(2\)\n.*unknown option --prot/,
    )
  })

  test('that is not ready in time is killed', async () => {
    const starting = ChildService.start({ argv: managerArguments('b'), startTimeoutMs: 1 })
    await expect(starting).rejects.toThrow('was not ready in time')
  })

  test('that is given up while it starts is killed', async () => {
    const controller = new AbortController()
    const starting = ChildService.start({ argv: managerArguments('c'), signal: controller.signal })
    controller.abort('SIGINT')
    await expect(starting).rejects.toThrow('was given up while it started')
  })
})
