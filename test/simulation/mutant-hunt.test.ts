import './shared-validators.ts'
import { expect, test } from 'vitest'
import { huntOne, quickMutants } from './mutant-hunt.ts'
import { mutants } from './mutants.ts'
import { simulate } from './simulation.ts'

test.each(mutants.filter(({ name }) => quickMutants.includes(name)))(
  'the simulation notices when $about',
  async (mutant) => {
    const lines: string[] = []
    const hunt = { first: 1, count: 8, print: (line: string) => lines.push(line) }
    expect({ isCaught: await huntOne(mutant, hunt), lines }).toMatchObject({ isCaught: true })
  },
)

test('a mutant that was taken out again leaves nothing behind', async () => {
  const before = await simulate(1)
  for (const mutant of mutants) mutant.install()()
  const after = await simulate(1)
  expect(after.findings).toEqual([])
  expect(after.digest).toBe(before.digest)
})
