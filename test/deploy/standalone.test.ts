// The systemd units and the configuration of deploy/: what they name exists, and the limits are enough.

import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseOptions } from '../../client/common/options.ts'
import type { OptionDeclaration } from '../../client/common/option-kinds.ts'
import { environmentName } from '../../client/common/option-sources.ts'
import { clusterCommandOptions } from '../../cli/manager-command.ts'
import { commands } from '../../cli/commands.ts'
import { managerOptions } from '../../shuffle-manager/options.ts'
import { parseDataDirectories, workerOptions } from '../../shuffle-worker/options.ts'
import { workerNodeFlags } from '../../shuffle-worker/heap-limits.ts'
import { checkDescriptors, threadsNeeded } from '../../shuffle-worker/process-limits.ts'
import { defaultStoreOptions } from '../../shuffle-worker/storage/data-store-options.ts'
import { diskOperationsInFlightMax } from '../../shuffle-worker/storage/disk-operation.ts'
import { readText } from '../support/source-tree.ts'

const yamlText = readText('deploy/sluice.yaml')
const worker = parseOptions(workerOptions, { yamlText }).values
const guide = readText('deploy/README.md')

/** The settings of a unit, several of one name in their order. */
function unit(name: string): ReadonlyMap<string, readonly string[]> {
  const settings = new Map<string, string[]>()
  for (const [, key = '', value = ''] of readText(`deploy/${name}`).matchAll(/^(\w+)=(.*)$/gm)) {
    settings.set(key, [...(settings.get(key) ?? []), value])
  }
  return settings
}

test('the configuration is what manager, workers and commands accept', () => {
  expect(() => parseOptions(managerOptions, { yamlText })).not.toThrow()
  expect(() => parseOptions(clusterCommandOptions, { yamlText })).not.toThrow()
  expect(worker.dataDirectories.length).toBeGreaterThan(1)
  const { 'remote-shuffle': sections } = parse(yamlText) as Record<string, object>
  expect(Object.keys(sections!)).toEqual(['manager', 'worker', 'command'])
})

describe.each(['manager', 'worker'])('sluice-%s.service', (role) => {
  const settings = unit(`sluice-${role}.service`)
  const environment = new Map(
    (settings.get('Environment') ?? []).map((text) => text.split('=') as [string, string]),
  )

  test('starts a command that exists, with variables that exist', () => {
    const [command] = /(?<=sluice )\w+$/.exec(settings.get('ExecStart')![0]!) ?? []
    expect(Object.keys(commands)).toContain(command)
    const options: readonly OptionDeclaration[] = Object.values(
      role === 'manager' ? managerOptions.options : workerOptions.options,
    )
    const known = options.map((option) => environmentName(role, option))
    const others = ['NODE_ENV', 'NODE_OPTIONS', 'UV_THREADPOOL_SIZE', 'SLUICE_CONFIG']
    for (const name of environment.keys()) expect([...known, ...others]).toContain(name)
  })

  test('is started again whenever it ends, and runs as nobody special', () => {
    expect(settings.get('Restart')).toEqual(['always'])
    expect(settings.get('User')).toEqual(['sluice'])
    expect(settings.get('NoNewPrivileges')).toEqual(['true'])
  })

  test('needs no other unit, so that the order of starts does not matter', () => {
    expect(settings.get('After')).toEqual(['network-online.target'])
    expect(settings.has('Requires')).toBe(false)
  })
})

test('the manager keeps its state in the directory that its unit makes', () => {
  const { stateDirectory } = parseOptions(managerOptions, { yamlText }).values
  const [made] = unit('sluice-manager.service').get('StateDirectory')!
  expect(stateDirectory).toBe(`/var/lib/${made!}`)
  // Where the check before the start looks for it as well.
  expect(guide).toContain(`install -d -o sluice -g sluice ${stateDirectory}\n`)
})

describe('the worker’s unit', () => {
  const settings = unit('sluice-worker.service')

  test('allows as many files as the options ask for', () => {
    const limits = `Max open files  ${settings.get('LimitNOFILE')![0]!}  1048576  files`
    expect(() => {
      checkDescriptors(limits, worker)
    }).not.toThrow()
  })

  test('has threads for eight disks', () => {
    const [threads] = /(?<=UV_THREADPOOL_SIZE=)\d+/.exec(readText('deploy/sluice-worker.service'))!
    const eight = threadsNeeded(diskOperationsInFlightMax(Array<'ssd'>(8).fill('ssd')))
    expect(Number(threads)).toBeGreaterThanOrEqual(eight)
  })

  test('has the heap that a worker that starts itself gives itself', () => {
    expect(settings.get('Environment')).toContain(`NODE_OPTIONS=${workerNodeFlags.join(' ')}`)
  })

  test('waits as long as a drain takes', () => {
    const waitMs = Number(settings.get('TimeoutStopSec')![0]) * 1000
    expect(waitMs).toBeGreaterThanOrEqual(
      worker.drainTimeoutMs + worker.drainReadersTimeoutMs + defaultStoreOptions.cleanStopTimeoutMs,
    )
  })

  test('may write where the configuration has its disks', () => {
    const paths = parseDataDirectories(worker.dataDirectories, '/').map(({ path }) => path)
    const writable = settings.get('ReadWritePaths')!.map((path) => path.replace(/^-/, ''))
    for (const path of paths) {
      expect(writable.some((each) => path.startsWith(`${each}/`))).toBe(true)
    }
  })
})

test('the guide names files, commands and options that exist', () => {
  for (const name of guide.match(/[\w-]+\.service|sluice\.yaml/g) ?? []) {
    expect(readText(`deploy/${name}`)).not.toBe('')
  }
  for (const [, command] of guide.matchAll(/`sluice ([a-z-]+)/g)) {
    expect(Object.keys(commands)).toContain(command)
  }
  const names = [...Object.values(workerOptions.options), ...Object.values(managerOptions.options)]
  const environmentNames = names.flatMap((option) => [
    environmentName('worker', option),
    environmentName('manager', option),
  ])
  for (const name of guide.match(/SLUICE_\w+/g) ?? []) expect(environmentNames).toContain(name)
})
