import { describe, expect, it } from 'vitest'
import { errorTable } from '../../../client/common/errors.ts'
import {
  allocationOf as allocationOfEntry,
  keyTextOf,
  lossCodes,
  PartitionRegistry,
  type RegistryEntry,
} from '../../../shuffle-worker/storage/partition-registry.ts'
import { allocationOf, keyOf } from './support/store-fixture.ts'

function entry(index: number, state: 'releasing' | 'released'): RegistryEntry {
  const allocation = allocationOf(index)
  return { state, key: keyOf(index), allocation, byteCount: 5, directoryIndex: 0 }
}

describe('the partition registry', () => {
  it('has a key in exactly one state, and counts each', () => {
    const registry = new PartitionRegistry()
    const text = keyTextOf(keyOf(1))
    registry.set(text, entry(1, 'releasing'))
    expect(registry.counts).toMatchObject({ releasing: 1, released: 0 })
    registry.set(text, entry(1, 'released'))
    expect(registry.counts).toMatchObject({ releasing: 0, released: 1 })
    registry.delete(text)
    registry.delete(text)
    expect(registry.counts).toMatchObject({ releasing: 0, released: 0 })
  })

  it('reports what the manager must know', () => {
    const registry = new PartitionRegistry()
    registry.set(keyTextOf(keyOf(2)), entry(2, 'releasing'))
    expect(registry.reports()).toEqual([
      { key: keyOf(2), allocation: allocationOf(2), state: 'releasing', byteCount: 5 },
    ])
    expect(allocationOfEntry(entry(2, 'released'))).toEqual(allocationOf(2))
  })

  it('has a code for every cause of a loss that makes the producer run again', () => {
    for (const code of Object.values(lossCodes)) {
      expect(errorTable[code].action).toBe('produce-again')
    }
  })
})
