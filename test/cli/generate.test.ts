import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { optionsDocument, optionsText } from '../../cli/generate.ts'

test('docs/options.md is what `npm run generate` makes', () => {
  expect(readFileSync(optionsDocument, 'utf8')).toBe(optionsText())
}, 60_000)
