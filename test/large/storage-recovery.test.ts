import { describe, it } from 'vitest'
import { ends, endTwice, variants } from '../shuffle-worker/storage/support/crash-lives.ts'

describe.each(variants)('recovery of partitions in %s', (_, variant) => {
  it.each(ends)('finds exactly the committed ones when it is %s twice in a row', async (end) => {
    await endTwice(variant, end, { first: 1, stride: 1 })
  })
})
