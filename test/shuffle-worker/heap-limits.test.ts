import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { limitHeapGrowth, workerNodeFlags } from '../../shuffle-worker/heap-limits.ts'

describe('the limits of the heap', () => {
  it('are flags that this Node knows', () => {
    const given: string[] = [...workerNodeFlags]
    limitHeapGrowth((flags) => given.push(flags))
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
    expect(given.length).toBeGreaterThan(1)
    for (const flag of given) {
      const [name = ''] = flag.replace(/^--no-/, '--').split('=')
      expect(known).toContain(`${name} `)
    }
  })

  it('can be set while the process runs', () => {
    expect(() => {
      limitHeapGrowth()
    }).not.toThrow()
  })
})
