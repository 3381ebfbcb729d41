import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { managerMachineChecks, workerMachineChecks } from '../../../cli/doctor/machine-checks.ts'
import { optionValues } from '../../../client/common/options.ts'
import { managerOptions } from '../../../shuffle-manager/options.ts'
import { workerOptions } from '../../../shuffle-worker/options.ts'
import { withTemporaryDirectory } from '../../support/temporary-directory.ts'

const machine = {
  workingDirectory: '/',
  environment: { UV_THREADPOOL_SIZE: '64' },
  limitsText: 'Max open files 1048576',
}

const bad = (checks: readonly { readonly status: string; readonly what: string }[]) =>
  checks.filter(({ status }) => status !== 'ok').map(({ status, what }) => `${status} ${what}`)

test('a configuration that fits its machine has nothing against it', async () => {
  await withTemporaryDirectory(async (directory) => {
    const tokenFile = join(directory, 'token')
    writeFileSync(tokenFile, 'secret', { mode: 0o600 })
    const worker = optionValues(workerOptions, {
      dataDirectories: [join(directory, 'new/disk')],
      minReservedSpaceBytes: 1,
      dataPort: 0,
      httpPort: 0,
      tokenFile,
    })
    expect(bad(await workerMachineChecks(worker, machine))).toEqual([])
    const manager = optionValues(managerOptions, { stateDirectory: directory, port: 0, tokenFile })
    expect(bad(await managerMachineChecks(manager))).toEqual([])
  })
})

test('each thing that does not fit is named', async () => {
  await withTemporaryDirectory(async (directory) => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const tokenFile = join(directory, 'token')
    writeFileSync(tokenFile, 'secret')
    chmodSync(tokenFile, 0o644)
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const disks = ['a', 'b'].map((name) => join(directory, name))
    for (const disk of disks) mkdirSync(disk)
    const worker = optionValues(workerOptions, {
      dataDirectories: [...disks, join(file, 'below a file')],
      minReservedSpaceBytes: 1024 ** 5,
      memoryBytes: 1024 ** 4,
      dataPort: (taken.address() as AddressInfo).port,
      httpPort: 0,
      tokenFile,
    })
    const small = { ...machine, environment: {}, limitsText: 'Max open files 1024' }
    const found = bad(await workerMachineChecks(worker, small))
    taken.close()
    expect(found).toEqual([
      'warning worker: token',
      `failure worker: disk ${disks[0] ?? ''}`,
      `failure worker: disk ${disks[1] ?? ''}`,
      `warning worker: disk ${disks[1] ?? ''}`,
      `failure worker: disk ${join(file, 'below a file')}`,
      'warning worker: data port',
      'warning worker: thread pool',
      'failure worker: open files',
      'warning worker: memory',
    ])
  })
})

test('a token that is not there, is empty, or was not thought of', async () => {
  await withTemporaryDirectory(async (directory) => {
    const base = { stateDirectory: directory, port: 0 }
    const empty = join(directory, 'empty')
    writeFileSync(empty, '', { mode: 0o600 })
    for (const [tokenFile, expected] of [
      [undefined, 'warning manager: token'],
      [empty, 'failure manager: token'],
      [join(directory, 'none'), 'failure manager: token'],
    ] as const) {
      const options = optionValues(managerOptions, {
        ...base,
        ...(tokenFile === undefined ? {} : { tokenFile }),
      })
      expect(bad(await managerMachineChecks(options))).toEqual([expected])
    }
  })
})
