import { expect, test } from 'vitest'

import {
  commonFlagsHelp,
  loadOptions,
  splitCommonFlags,
} from '../../../client/common/load-options.ts'
import { declareOptions } from '../../../client/common/options.ts'

const declaration = declareOptions('worker', {
  port: { name: 'port', type: 'port', default: 1, about: 'P.' },
})

const noFile = (path: string): string => {
  throw new Error(`no such file: ${path}`)
}

test('the common flags are taken out, the rest stays in order', () => {
  expect(splitCommonFlags(['--help', 'a', '--version', '--port', '1', '--print-config'])).toEqual({
    argv: ['a', '--port', '1'],
    configPath: undefined,
    requests: new Set(['help', 'version', 'print-config']),
  })
  expect(splitCommonFlags(['-h']).requests).toEqual(new Set(['help']))
})

test('what follows -- is no flag', () => {
  expect(splitCommonFlags(['--', '--help']).argv).toEqual(['--', '--help'])
})

test.each([
  [['--config', 'a.yaml'], {}, 'a.yaml'],
  [['--config=a.yaml'], {}, 'a.yaml'],
  [[], { SLUICE_CONFIG: 'b.yaml' }, 'b.yaml'],
  [['--config=a.yaml'], { SLUICE_CONFIG: 'b.yaml' }, 'a.yaml'],
])('the configuration file of %j and %j is %j', (argv, environment, expected) => {
  expect(splitCommonFlags(argv, environment).configPath).toBe(expected)
})

test.each([[['--config']], [['--config=']]])('%j without a path is refused', (argv) => {
  expect(() => splitCommonFlags(argv)).toThrow('--config needs the path')
})

test('options are read from the file that is named', () => {
  const readFile = (path: string) => (path === 'a.yaml' ? 'remote-shuffle.worker.port: 7' : '')
  expect(loadOptions(declaration, { argv: ['--config', 'a.yaml'], readFile }).values.port).toBe(7)
})

test('without a file nothing is read', () => {
  expect(loadOptions(declaration, { argv: ['--port=3'], readFile: noFile }).values.port).toBe(3)
})

test('a file that can not be read is named, with the reason', () => {
  const load = () => loadOptions(declaration, { argv: ['--config=x.yaml'], readFile: noFile })
  expect(load).toThrow("--config x.yaml can't be read: no such file: x.yaml")
})

test('a bad key is named with its file', () => {
  const readFile = () => 'remote-shuffle.worker.prot: 7'
  const load = () => loadOptions(declaration, { argv: ['--config=x.yaml'], readFile })
  expect(load).toThrow('x.yaml: unknown key remote-shuffle.worker.prot; did you mean')
})

test('every common flag has its line of help', () => {
  const text = commonFlagsHelp.map(([flag]) => flag).join(' ')
  for (const flag of ['--config', '--print-config', '--help', '--version']) {
    expect(text).toContain(flag)
  }
})
