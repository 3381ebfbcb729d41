// House rules that a machine can check. The import layers and the mirrored tests are checked by
// test/tidy.test.ts.

import js from '@eslint/js'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

/** The only files inside client and services that touch the world itself. */
const seams = ['client/common/real-*.ts', 'client/common/{clock,random,log}.ts']

const worldModules = [
  'fs',
  'fs/promises',
  'net',
  'dgram',
  'tls',
  'http',
  'https',
  'http2',
  'dns',
  'dns/promises',
  'timers',
  'timers/promises',
  'child_process',
  'cluster',
  'worker_threads',
]

const toSeam =
  'comes in by constructor as a seam of client/common (clock, random, network, disk, compute)'

const noWorldImportsBut = (...allowed) => [
  'error',
  {
    paths: worldModules
      .filter((name) => !allowed.includes(name))
      .flatMap((name) => [
        { name, message: `This ${toSeam}.`, allowTypeImports: true },
        { name: `node:${name}`, message: `This ${toSeam}.`, allowTypeImports: true },
      ]),
  },
]

const noWorldGlobals = [
  'error',
  ...['setTimeout', 'setInterval', 'setImmediate', 'fetch', 'performance'].map((name) => ({
    name,
    message: `This ${toSeam}.`,
  })),
]

const noWorldProperties = [
  'error',
  { object: 'Date', property: 'now', message: `Time ${toSeam}.` },
  { object: 'performance', property: 'now', message: `Time ${toSeam}.` },
  { object: 'process', property: 'hrtime', message: `Time ${toSeam}.` },
  { object: 'Math', property: 'random', message: `Randomness ${toSeam}.` },
]

const noWorldSyntax = [
  'error',
  {
    selector: "NewExpression[callee.name='Date'][arguments.length=0]",
    message: `Time ${toSeam}.`,
  },
  { selector: 'TSEnumDeclaration', message: 'A union of literals, not an enum.' },
]

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', 'node_modules/', '**/*.generated.ts']),
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'separate-type-imports' },
      ],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all' },
      ],
      // Branding functions name their result by a type parameter.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      eqeqeq: 'error',
      'no-console': 'error',
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'] }],
    },
  },
  {
    files: ['{client,shuffle-manager,shuffle-worker,runtime,cli,bench}/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      // A switch counts once: one that is total over a closed union is a table.
      complexity: ['error', { max: 12, variant: 'modified' }],
    },
  },
  {
    files: ['{client,shuffle-manager,shuffle-worker}/**/*.ts'],
    ignores: seams,
    rules: {
      '@typescript-eslint/no-restricted-imports': noWorldImportsBut(),
      'no-restricted-globals': noWorldGlobals,
      'no-restricted-properties': noWorldProperties,
      'no-restricted-syntax': noWorldSyntax,
    },
  },
  {
    // An HTTP server without a socket of its own: it parses the streams that the network hands it.
    files: ['shuffle-{manager,worker}/http/**/*.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': noWorldImportsBut('http') },
  },
  {
    // A process reads its token and its configuration before there is a world.
    files: ['shuffle-{manager,worker}/main.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': noWorldImportsBut('fs') },
  },
  {
    // The process itself: signals, exit codes, standard streams.
    files: ['shuffle-{manager,worker}/main.ts', 'cli/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 900, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
      },
    },
  },
)
