import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  managerCommand,
  starterDirectory,
  temporaryDirectoryVariable,
  thenRemove,
  workerCommand,
} from '../../cli/service-commands.ts'
import { commandContext } from '../support/command-context.ts'

let around = ''
beforeEach(() => {
  around = mkdtempSync(path.join(tmpdir(), 'sluice-test-'))
  for (const name of ['one', 'two', starterDirectory]) {
    mkdirSync(path.join(around, name))
    writeFileSync(path.join(around, name, 'file'), '')
  }
})
afterEach(() => {
  rmSync(around, { recursive: true, force: true })
})

function context(name: string) {
  return { environment: { [temporaryDirectoryVariable]: path.join(around, name) } }
}

test('a service removes its temporary directory when it ends, also by an error', async () => {
  expect(await thenRemove(context('one'), () => Promise.resolve(4))).toBe(4)
  expect(existsSync(path.join(around, 'one'))).toBe(false)
  await expect(thenRemove(context('two'), () => Promise.reject(new Error('x')))).rejects.toThrow(
    'x',
  )
  expect(existsSync(path.join(around, 'two'))).toBe(false)
  expect(existsSync(path.join(around, starterDirectory, 'file'))).toBe(true)
})

test('the last one whose starter is gone removes what that one left', async () => {
  let parent = 100
  const end = () => {
    parent = 1
    return Promise.resolve(0)
  }
  await thenRemove(context('one'), end, () => parent)
  expect(existsSync(around)).toBe(true)
  parent = 100
  await thenRemove(context('two'), end, () => parent)
  expect(existsSync(around)).toBe(false)
})

test('without a temporary directory nothing is removed', async () => {
  await thenRemove({ environment: {} }, () => Promise.resolve(0))
  expect(existsSync(path.join(around, 'one', 'file'))).toBe(true)
})

test('both services refuse an unknown option by name and print their configuration', async () => {
  for (const command of [managerCommand, workerCommand]) {
    await expect(command.run(['--prot=1'], commandContext())).rejects.toThrow(
      'unknown option --prot',
    )
  }
  const printing = commandContext()
  await managerCommand.run(['--port=1', '--print-config'], printing)
  expect(printing.printed.join('')).toMatch(/port: 1 # --port/)
})
