import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isShuffleError } from '../../client/common/errors.ts'
import { loadOptions } from '../../client/common/load-options.ts'
import { environmentName } from '../../client/common/option-sources.ts'
import {
  optionSections,
  type OptionsDeclaration,
  type OptionTable,
} from '../../client/common/options.ts'
import { clusterCommandOptions } from '../../cli/manager-command.ts'
import { localOptions } from '../../cli/local-command.ts'
import { mainJobOptions } from '../../cli/main-job-command.ts'
import { managerOptions } from '../../shuffle-manager/options.ts'
import { workerOptions } from '../../shuffle-worker/options.ts'
import { fuzzBudget } from './budget.ts'

// A configuration file with anything in it, and flags and environment beside it: read, or refused in
// words that name the file or the option; never a value that its declaration does not allow.

/** Its table as any table: the values are looked at by its own checks only. */
function plain<Table extends OptionTable>(of: OptionsDeclaration<Table>): OptionsDeclaration {
  return of as unknown as OptionsDeclaration
}

const declarations: readonly (readonly [string, OptionsDeclaration])[] = [
  ['manager', plain(managerOptions)],
  ['worker', plain(workerOptions)],
  ['local', plain(localOptions)],
  ['main-job', plain(mainJobOptions)],
  ['command', plain(clusterCommandOptions)],
]

const scalar = fc.oneof(
  fc.constantFrom('64mb', '15s', '0', '-1', '1e9', '.inf', 'true', 'no', '[a, /b]', '{a: b}', '~'),
  fc.constantFrom(
    '&a *a',
    '*b',
    '!!binary aGk=',
    '!x y',
    '|',
    '>-',
    '"',
    "'",
    '- ',
    '? x',
    '#',
    '@',
  ),
  fc.constantFrom('9007199254740993', '99999999999999999999tb', '0x10', '1_000', '2024-01-01'),
  fc.string({ maxLength: 30 }),
)

/** Values that fit an option of the kind, so that much of what is read gets far. */
function valueOf(option: OptionsDeclaration['options'][string]): fc.Arbitrary<string> {
  const fitting: Record<string, readonly string[]> = {
    integer: ['1', '16', '70000', '1000000'],
    bytes: ['8mb', '64mb', '1tb', '0'],
    duration: ['1ms', '15s', '10m', '1d'],
    port: ['0', '9700', '65536'],
    boolean: ['true', 'false'],
    list: ['[/a, /b]', 'a,b', '[]'],
    host: ['localhost', '::1', 'a b'],
    path: ['./x', '/y', ''],
    enum: 'choices' in option ? option.choices : [],
  }
  return fc.constantFrom(...(fitting[option.type] ?? []), 'x')
}

function fileOf(declaration: OptionsDeclaration): fc.Arbitrary<string> {
  const options = Object.values(declaration.options)
  const line = fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .constantFrom(...options)
        .chain((option) => valueOf(option).map((value) => `${option.name}: ${value}`)),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom(...options.map(({ name }) => name), 'x'), scalar)
        .map(([name, value]) => `${name}: ${value}`),
    },
    { weight: 1, arbitrary: scalar },
  )
  const section = fc.constantFrom(...optionSections, declaration.section, declaration.section)
  const lines = fc.array(line, { maxLength: 6 })
  return fc.oneof(
    fc
      .tuple(section, lines)
      .map(([name, all]) =>
        ['remote-shuffle:', `  ${name}:`, ...all.map((each) => `    ${each}`)].join('\n'),
      ),
    fc
      .tuple(section, lines)
      .map(([name, all]) => all.map((each) => `remote-shuffle.${name}.${each}`).join('\n')),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('utf8')),
    // An alias in an alias in an alias: small as text, large as a tree.
    fc.nat(12).map((depth) =>
      ['a0: &a0 [x, x, x]']
        .concat(
          Array.from({ length: depth }, (_, at) => {
            const before = `*a${String(at)}`
            return `a${String(at + 1)}: &a${String(at + 1)} [${[before, before, before].join(', ')}]`
          }),
        )
        .concat('remote-shuffle: *a' + String(depth))
        .join('\n'),
    ),
  )
}

test.each(declarations)(
  'any configuration of %s is read, or refused in words',
  (_name, declaration) => {
    const names = Object.values(declaration.options).map(({ name }) => name)
    const flag = fc.oneof(
      fc.tuple(fc.constantFrom(...names), scalar).map(([name, value]) => `--${name}=${value}`),
      fc.constantFrom(...names).map((name) => `--no-${name}`),
      fc.string({ maxLength: 20 }),
      fc.constantFrom('--', '--help', '--print-config', '--config', '--config='),
    )
    const environment = fc.dictionary(
      fc
        .constantFrom(...Object.values(declaration.options))
        .map((option) => environmentName(declaration.section, option)),
      scalar,
      { maxKeys: 3 },
    )
    const required = Object.fromEntries(
      Object.values(declaration.options)
        .filter((option) => 'required' in option)
        .map((option) => [environmentName(declaration.section, option), '/a,/b']),
    )
    let readCount = 0
    fc.assert(
      fc.property(
        fileOf(declaration),
        fc.array(flag, { maxLength: 3 }),
        environment,
        (text, argv, variables) => {
          try {
            const { values } = loadOptions(declaration, {
              argv: ['--config=/c.yaml', ...argv],
              environment: { ...required, ...variables },
              workingDirectory: '/w',
              readFile: () => text,
            })
            readCount += 1
            expect(declaration.inconsistencies(values as never)).toEqual([])
          } catch (error) {
            if (!isShuffleError(error)) throw error
            expect(error.code).toBe('INVALID_ARGUMENT')
            expect(error.message.length).toBeLessThan(20_000)
          }
        },
      ),
      fuzzBudget(0.4),
    )
    expect(readCount).toBeGreaterThan(0)
  },
)
