import { expect, test } from 'vitest'

import { mainJobCommand } from '../../cli/main-job-command.ts'
import { commandContext } from '../support/command-context.ts'

test('the main job counts real words, compares, and says what it saw and where to look next', async () => {
  const context = commandContext()
  expect(await mainJobCommand.run(['--input-size=200kb'], context)).toBe(0)
  const text = context.printed.join('')
  expect(text).toMatch(/manager +http:.*\n +worker .*\n +worker /)
  expect(text).toMatch(/Both agree on \d+ distinct words\./)
  expect(text).toMatch(/WORD +COUNT\n/)
  expect(text).toMatch(/shuffled +[1-9].*compressed to [1-9]/)
  expect(text).toMatch(/Where to look next:/)
}, 180_000)
