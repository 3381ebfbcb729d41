import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import {
  describeAllowed,
  formatBytes,
  formatDuration,
  formatOption,
  optionTextLengthMax,
  parseBytes,
  parseDuration,
  readOption,
  type OptionDeclaration,
} from '../../../client/common/option-kinds.ts'

const base = { name: 'it', about: 'It.' }

function read(option: OptionDeclaration, ...texts: string[]) {
  const reading = readOption(option, texts, undefined)
  return reading.kind === 'value' ? reading.value : reading
}

describe('each kind takes what it allows', () => {
  test.each<[OptionDeclaration, string, unknown]>([
    [{ ...base, type: 'string' }, '', ''],
    [{ ...base, type: 'string' }, 'any text', 'any text'],
    [{ ...base, type: 'string', pattern: /^a+$/ }, 'aaa', 'aaa'],
    [{ ...base, type: 'path' }, './a', './a'],
    [{ ...base, type: 'host' }, 'worker-1.example', 'worker-1.example'],
    [{ ...base, type: 'host' }, '127.0.0.1', '127.0.0.1'],
    [{ ...base, type: 'host' }, '::1', '::1'],
    [{ ...base, type: 'host' }, '::', '::'],
    [{ ...base, type: 'host' }, 'fe80::1%eth0', 'fe80::1%eth0'],
    [{ ...base, type: 'port' }, '0', 0],
    [{ ...base, type: 'port' }, '65535', 65_535],
    [{ ...base, type: 'integer' }, '2147483647', 2_147_483_647],
    [{ ...base, type: 'integer', min: -5, max: 5 }, '-5', -5],
    [{ ...base, type: 'bytes' }, '64mb', 64 * 1024 * 1024],
    [{ ...base, type: 'bytes', min: '1kb', max: '2kb' }, '2kb', 2048],
    [{ ...base, type: 'duration' }, '15s', 15_000],
    [{ ...base, type: 'duration' }, '0', 0],
    [{ ...base, type: 'boolean' }, 'true', true],
    [{ ...base, type: 'boolean' }, 'false', false],
    [{ ...base, type: 'enum', choices: ['ssd', 'hdd'] }, 'hdd', 'hdd'],
    [{ ...base, type: 'list' }, 'a,b , c', ['a', 'b', 'c']],
    [{ ...base, type: 'list' }, '', []],
    [{ ...base, type: 'list', of: 'host' }, 'a.example,::1', ['a.example', '::1']],
  ])('%j takes %j', (option, text, expected) => {
    expect(read(option, text)).toEqual(expected)
  })

  test('a list takes its items also from several texts', () => {
    expect(read({ ...base, type: 'list' }, 'a,b', 'c')).toEqual(['a', 'b', 'c'])
    expect(read({ ...base, type: 'list' })).toEqual([])
  })
})

describe('each kind refuses the rest, and says what is allowed', () => {
  test.each<[OptionDeclaration, string, RegExp]>([
    [{ ...base, type: 'string', lengthMax: 3 }, 'four', /at most 3 characters, got "four"/],
    [{ ...base, type: 'string', pattern: /^a+$/ }, 'b', /like \^a\+\$/],
    [
      { ...base, type: 'string', pattern: /^a+$/, allowed: 'some a' },
      'b',
      /must be some a, got "b"/,
    ],
    [{ ...base, type: 'path' }, '', /must be a path/],
    [{ ...base, type: 'path' }, 'a\0b', /must be a path/],
    [{ ...base, type: 'host' }, 'http://a', /host name/],
    [{ ...base, type: 'host' }, '-a', /host name/],
    [{ ...base, type: 'host' }, 'a'.repeat(254), /host name/],
    [{ ...base, type: 'port' }, '65536', /from 0 to 65535/],
    [{ ...base, type: 'port' }, '-1', /from 0 to 65535/],
    [{ ...base, type: 'port' }, '80.5', /from 0 to 65535/],
    [{ ...base, type: 'port' }, '', /from 0 to 65535/],
    [{ ...base, type: 'integer' }, '-1', /from 0 to 2147483647/],
    [{ ...base, type: 'integer', min: 1, max: 9 }, '10', /from 1 to 9/],
    [{ ...base, type: 'integer' }, '1e3', /whole number/],
    [{ ...base, type: 'integer' }, '0x10', /whole number/],
    [{ ...base, type: 'bytes', min: '1kb' }, '1023', /at least 1kb/],
    [{ ...base, type: 'bytes', max: '1kb' }, '2kb', /from 0b to 1kb/],
    [{ ...base, type: 'bytes' }, '64 megabytes', /size such as 64mb/],
    [{ ...base, type: 'bytes' }, '9007199254740993', /size such as/],
    [{ ...base, type: 'duration' }, '15', /time such as 15s/],
    [{ ...base, type: 'duration', min: '1s' }, '999ms', /from 1s/],
    [{ ...base, type: 'duration' }, '30d', /to 24d/],
    [{ ...base, type: 'boolean' }, 'yes', /true or false/],
    [
      { ...base, type: 'enum', choices: ['ssd', 'hdd'] },
      'sdd',
      /one of ssd, hdd.*did you mean ssd/,
    ],
    [{ ...base, type: 'list', itemsMin: 1 }, '', /1 to 64 texts.*got 0 items/],
    [{ ...base, type: 'list', itemsMax: 2 }, 'a,b,c', /0 to 2 texts.*got 3 items/],
    [{ ...base, type: 'list' }, 'a,,b', /empty item/],
    [{ ...base, type: 'list', of: 'host' }, 'a,b c', /host name/],
  ])('%j refuses %j', (option, text, expected) => {
    expect(read(option, text)).toMatchObject({
      kind: 'problem',
      problem: expect.stringMatching(expected) as string,
    })
  })

  test('a single value is refused twice, missing, or too long', () => {
    const option: OptionDeclaration = { ...base, type: 'integer' }
    expect(read(option, '1', '2')).toMatchObject({ problem: 'is given more than once' })
    expect(read(option)).toMatchObject({ problem: 'has no value' })
    const long = '1'.repeat(optionTextLengthMax + 1)
    expect(read(option, long)).toMatchObject({ problem: 'is longer than 4096 characters' })
  })

  test('a refused text is cut in the error', () => {
    const reading = read({ ...base, type: 'integer' }, 'x'.repeat(1000))
    expect(JSON.stringify(reading).length).toBeLessThan(200)
  })
})

test('relative paths are resolved against the working directory', () => {
  const option: OptionDeclaration = { ...base, type: 'path' }
  const reading = (text: string) => readOption(option, [text], '/home/user')
  expect(reading('data')).toEqual({ kind: 'value', value: '/home/user/data' })
  expect(reading('../x')).toEqual({ kind: 'value', value: '/home/x' })
  expect(reading('/abs')).toEqual({ kind: 'value', value: '/abs' })
  expect(readOption({ ...base, type: 'list', of: 'path' }, ['a,/b'], '/w')).toEqual({
    kind: 'value',
    value: ['/w/a', '/b'],
  })
})

test.each([
  ['0', 0],
  ['7b', 7],
  ['1k', 1024],
  ['1kb', 1024],
  ['1KiB', 1024],
  ['2 mb', 2 * 1024 ** 2],
  ['3GB', 3 * 1024 ** 3],
  ['1tb', 1024 ** 4],
  ['8192tb', undefined],
  ['mb', undefined],
  ['-1kb', undefined],
  ['1.5mb', undefined],
  ['1pb', undefined],
])('parseBytes reads %j as %j', (text, expected) => {
  expect(parseBytes(text)).toBe(expected)
})

test.each([
  ['0', 0],
  ['5ms', 5],
  ['5s', 5000],
  ['2m', 120_000],
  ['2min', 120_000],
  ['1h', 3_600_000],
  ['1D', 86_400_000],
  ['5', undefined],
  ['1.5s', undefined],
  ['-5s', undefined],
  ['5w', undefined],
])('parseDuration reads %j as %j', (text, expected) => {
  expect(parseDuration(text)).toBe(expected)
})

test('a size or time that is written out reads back as the same', () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 40 }), (amount) => {
      expect(parseBytes(formatBytes(amount))).toBe(amount)
      expect(parseDuration(formatDuration(amount))).toBe(amount)
    }),
  )
  expect([formatBytes(64 * 1024 ** 2), formatDuration(90_000)]).toEqual(['64mb', '90s'])
})

test.each<[OptionDeclaration, Parameters<typeof formatOption>[1], string]>([
  [{ ...base, type: 'bytes' }, 1536, '1536b'],
  [{ ...base, type: 'duration' }, 60_000, '1m'],
  [{ ...base, type: 'port' }, 9700, '9700'],
  [{ ...base, type: 'boolean' }, true, 'true'],
  [{ ...base, type: 'string' }, 'x', 'x'],
])('formatOption writes a value of %j', (option, value, expected) => {
  expect(formatOption(option, value)).toBe(expected)
})

test('what is allowed is described for every kind', () => {
  const options: OptionDeclaration[] = [
    { ...base, type: 'string' },
    { ...base, type: 'path' },
    { ...base, type: 'host' },
    { ...base, type: 'port' },
    { ...base, type: 'integer' },
    { ...base, type: 'bytes' },
    { ...base, type: 'duration' },
    { ...base, type: 'boolean' },
    { ...base, type: 'enum', choices: ['a'] },
    { ...base, type: 'list', of: 'path' },
  ]
  for (const option of options) expect(describeAllowed(option).length).toBeGreaterThan(5)
})
