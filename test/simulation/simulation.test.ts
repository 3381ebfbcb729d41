import './shared-validators.ts'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { simulate } from './simulation.ts'

/** A share of what `npm run simulate` is for, so that each change runs some of it. */
const firstSeed = 1000
const seedCount = 15

test('whole clusters under faults lose nothing, mix nothing up, leave nothing behind', async () => {
  for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
    const { findings, events, figures } = await simulate(seed)
    expect({ seed, findings, events: findings.length === 0 ? [] : events.slice(-40) }).toEqual({
      seed,
      findings: [],
      events: [],
    })
    expect(figures.messages).toBeGreaterThan(0)
  }
})

test('without faults and cancellations nothing but the right records reaches anybody', async () => {
  for (let seed = firstSeed; seed < firstSeed + 4; seed += 1) {
    const { findings, figures } = await simulate(seed, { isCalm: true })
    expect({ seed, findings }).toEqual({ seed, findings: [] })
    expect(figures.faultsHit).toBe(0)
  }
})

test('a seed replays to the letter, in another process too', async () => {
  const seed = firstSeed + 3
  const { digest } = await simulate(seed)
  const script = fileURLToPath(new URL('simulate.ts', import.meta.url))
  const other = spawnSync(process.execPath, ['--import', 'tsx', script, '--seed', String(seed)], {
    encoding: 'utf8',
  })
  expect(other.stdout).toContain(`seed ${String(seed)}: trace ${digest}`)
  expect((await simulate(seed + 1)).digest).not.toBe(digest)
})
