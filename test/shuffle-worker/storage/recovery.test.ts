import { describe, it } from 'vitest'
import { endAtEachCall, ends, killTwice, variants } from './support/crash-lives.ts'

describe.each(variants)('recovery of partitions in %s', (name, variant) => {
  it.each(ends)('finds exactly the committed ones wherever the worker is %s', async (end) => {
    await endAtEachCall(variant, end, 'before')
    await endAtEachCall(variant, end, 'after')
  })

  it('finds them when the life after a kill is itself killed, at any call', async () => {
    // Every ninth call of the first life, other ones in each variant; test/large has them all.
    await killTwice(variant, { first: 1 + (name.length % 9), stride: 9 })
  })
})
