import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { commands } from '../../cli/commands.ts'
import { commandsDocument, commandsText, optionsDocument, optionsText } from '../../cli/generate.ts'

test('docs/options.md is what `npm run generate` makes', () => {
  expect(readFileSync(optionsDocument, 'utf8')).toBe(optionsText())
}, 60_000)

test('docs/commands.md is what `npm run generate` makes, and has every command', async () => {
  const text = readFileSync(commandsDocument, 'utf8')
  expect(text).toBe(await commandsText())
  for (const name of Object.keys(commands)) expect(text).toContain(`\n## ${name}\n`)
}, 60_000)
