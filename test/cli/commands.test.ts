import { expect, test } from 'vitest'

import { commands } from '../../cli/commands.ts'

test.each(Object.entries(commands))(
  '%s has a help that a newcomer can begin with',
  async (name, { about, load }) => {
    const command = await load()
    expect(about).toMatch(/^[A-Z].*\.$/)
    expect(command.usage.startsWith(`sluice ${name}`)).toBe(true)
    const help = command.help()
    expect(help.startsWith(`Usage: ${command.usage}\n\n`)).toBe(true)
    expect(help).toContain('--print-config')
  },
  60_000,
)
