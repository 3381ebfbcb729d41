import { describe, it } from 'vitest'
import { killTwice, variants } from '../shuffle-worker/storage/support/crash-lives.ts'

describe.each(variants)('recovery of partitions in %s', (_, variant) => {
  it('finds exactly the committed ones after kills at any two calls in a row', async () => {
    await killTwice(variant, { first: 1, stride: 1 })
  })
})
