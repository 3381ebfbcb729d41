import { describe, expect, it } from 'vitest'
import {
  decodeJournalRecord,
  encodeJournalRecord,
  JournalState,
  type JournalRecord,
  type PartitionPlace,
} from '../../../shuffle-worker/storage/journal-records.ts'
import { factsOf, keyOf } from './support/store-fixture.ts'

const file = (ordinal: number): PartitionPlace => ({
  kind: 'file',
  ordinal,
  offset: 0,
  byteLength: 10,
})
const piece = (ordinal: number, offset: number): PartitionPlace => ({
  kind: 'segment',
  ordinal,
  offset,
  byteLength: 10,
})
const committed = (place: PartitionPlace, index: number): JournalRecord => ({
  type: 'committed',
  place,
  facts: factsOf(keyOf(index)),
})

const everyKind: readonly JournalRecord[] = [
  { type: 'session', bootId: 'boot', workerEpoch: 3 },
  committed(file(1), 1),
  committed(piece(2, 28), 2),
  { type: 'released', place: file(1), key: keyOf(1) },
  { type: 'segment', ordinal: 2, end: 100 },
  { type: 'durable' },
]

function replay(records: readonly JournalRecord[]): JournalState {
  const state = new JournalState()
  for (const record of records) state.apply(record)
  return state
}

describe('journal records', () => {
  it.each(everyKind)('of type $type come back as they were written', (record) => {
    expect(decodeJournalRecord(encodeJournalRecord(record))).toEqual(record)
  })

  it('of a newer type are kept as they are', () => {
    const body = Buffer.from([99, 1, 2])
    const record = decodeJournalRecord(body)
    expect(record.type).toBe('unknown')
    expect(Buffer.from(encodeJournalRecord(record))).toEqual(body)
    expect(replay([record]).records()).toContainEqual(record)
  })

  it('with a field cut off are damaged', () => {
    for (const record of everyKind.slice(0, 5)) {
      const body = encodeJournalRecord(record)
      expect(() => decodeJournalRecord(body.subarray(0, -1))).toThrow(/damaged/)
    }
  })
})

describe('the state of a journal', () => {
  it('is the same after it was compacted', () => {
    const state = replay([
      ...everyKind,
      { type: 'session', bootId: 'boot', workerEpoch: 4 },
      committed(file(3), 3),
      { type: 'released', place: file(5), key: keyOf(5) },
    ])
    const again = replay(state.records())
    expect(again.records()).toEqual(state.records())
    expect([...again.committed.values()]).toEqual([...state.committed.values()])
    expect(again.bootId).toBe('boot')
  })

  it('believes in durability what was synced, or stopped cleanly since', () => {
    const state = replay([committed(file(1), 1), { type: 'durable' }, committed(file(2), 2)])
    expect([...state.committed.values()].map((each) => each.isDurable)).toEqual([true, false])
    expect([...replay(state.records()).committed.values()].map((each) => each.isDurable)).toEqual([
      true,
      false,
    ])
  })

  it('remembers how far segments are known, also of what was released', () => {
    const place = piece(7, 128)
    const state = replay([committed(place, 1), { type: 'released', place, key: keyOf(1) }])
    expect(state.committed.size).toBe(0)
    expect(state.segmentEnds.get(7)).toBe(138)
    state.forgetFile(7)
    expect(state.segmentEnds.size).toBe(0)
    expect(state.ordinalMax).toBe(7)
  })

  it('remembers released files until they are gone', () => {
    const state = replay([
      committed(file(4), 1),
      { type: 'released', place: file(4), key: keyOf(1) },
    ])
    expect(state.released.size).toBe(1)
    state.forgetFile(4)
    expect(state.records().some((record) => record.type === 'released')).toBe(false)
  })
})
