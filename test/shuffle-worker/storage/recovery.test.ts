import { describe, expect, it } from 'vitest'
import {
  callsOfALife,
  endAtEachCall,
  ends,
  endStartOnFullDiskAtEachCall,
  endTwice,
  variants,
} from './support/crash-lives.ts'

describe.each(variants)('recovery of partitions in %s', (name, variant) => {
  it('is looked at around every kind of call that creates, writes, finishes, releases or orders', async () => {
    const calls = await callsOfALife(variant)
    const kept = ['open', 'write', 'sync', 'close', 'rename'].flatMap((kind) =>
      ['identity', 'journal', 'service'].map((file) => `${kind} ${file}`),
    )
    const isSmall = name.startsWith('the shared log')
    const partitions = isSmall
      ? ['open .segment', 'write .segment', 'sync .segment', 'syncDirectory log']
      : [
          'open .partial',
          'write .partial',
          'rename .partial',
          'unlink .data',
          'syncDirectory partitions',
        ]
    const synced = variant.durability === 'sync' && !isSmall ? ['sync .partial'] : []
    expect([...calls]).toEqual(
      expect.arrayContaining([...kept, ...partitions, ...synced, 'syncDirectory /data']),
    )
  })

  it.each(ends)('finds exactly the committed ones wherever the worker is %s', async (end) => {
    await endAtEachCall(variant, end, 'before')
    await endAtEachCall(variant, end, 'after')
  })

  it('finds all on a full disk, wherever a start on it has ended', async () => {
    await endStartOnFullDiskAtEachCall(variant)
  })

  // Some calls of the first life, other ones in each variant; test/large has them all.
  it.each(ends.map((end, index) => [end, index] as const))(
    'finds them when it is %s twice in a row, at any two calls',
    async (end, index) => {
      await endTwice(variant, end, { first: 1 + ((name.length + 29 * index) % 96), stride: 96 })
    },
  )
})
