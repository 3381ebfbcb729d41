// The records of a directory's journal and what they add up to. The journal is an index to the
// directory, so that a start need not open every file; the directory is the truth. The same state
// is built by replay and kept while running, so that compaction writes exactly what replay read.
//
//   session    from here on this boot and epoch
//   committed  a partition is named file `ordinal`, or lies at `offset` in segment `ordinal`
//   released   told to release; the file may still be there
//   segment    records of segment `ordinal` before `end` are known, whatever became of them
//   durable    everything above has been synced (a clean stop)

import { partitionKeyText, type PartitionKey } from '../../client/common/ids.ts'
import { parsePartitionKeyText, idLengthMax } from '../../client/common/ids.ts'
import { ByteReader, ByteWriter, corrupt } from './byte-codec.ts'
import { readFacts, writeFacts, type PartitionFacts } from './partition-format.ts'

/** Where a partition lies: a file of its own (offset 0, whole file), or a piece of a segment. */
export interface PartitionPlace {
  readonly kind: 'file' | 'segment'
  readonly ordinal: number
  readonly offset: number
  readonly byteLength: number
}

export type JournalRecord =
  | { readonly type: 'session'; readonly bootId: string; readonly workerEpoch: number }
  | { readonly type: 'committed'; readonly place: PartitionPlace; readonly facts: PartitionFacts }
  | { readonly type: 'released'; readonly place: PartitionPlace; readonly key: PartitionKey }
  | { readonly type: 'segment'; readonly ordinal: number; readonly end: number }
  | { readonly type: 'durable' }
  /** Of a newer version: kept as it is. */
  | { readonly type: 'unknown'; readonly body: Uint8Array }

const typeNumbers = { session: 1, committed: 2, released: 3, segment: 4, durable: 5 } as const
const bootIdLengthMax = 200

export function encodeJournalRecord(record: JournalRecord): Uint8Array {
  const writer = new ByteWriter()
  if (record.type === 'unknown') return record.body
  writer.u8(typeNumbers[record.type])
  switch (record.type) {
    case 'session':
      writer.text(record.bootId).varint(record.workerEpoch)
      break
    case 'committed':
      writePlace(writer, record.place)
      writeFacts(writer, record.facts)
      break
    case 'released':
      writePlace(writer, record.place)
      writer.text(partitionKeyText(record.key))
      break
    case 'segment':
      writer.varint(record.ordinal).varint(record.end)
      break
    case 'durable':
      break
  }
  return writer.bytes
}

export function decodeJournalRecord(body: Uint8Array): JournalRecord {
  const reader = new ByteReader(body)
  const record = readRecord(reader, body)
  if (record.type !== 'unknown') reader.end()
  return record
}

function readRecord(reader: ByteReader, body: Uint8Array): JournalRecord {
  switch (reader.u8()) {
    case typeNumbers.session:
      return { type: 'session', bootId: reader.text(bootIdLengthMax), workerEpoch: reader.varint() }
    case typeNumbers.committed:
      return { type: 'committed', place: readPlace(reader), facts: readFacts(reader) }
    case typeNumbers.released: {
      const place = readPlace(reader)
      return { type: 'released', place, key: readKey(reader) }
    }
    case typeNumbers.segment:
      return { type: 'segment', ordinal: reader.varint(), end: reader.varint() }
    case typeNumbers.durable:
      return { type: 'durable' }
    default:
      return { type: 'unknown', body: body.slice() }
  }
}

function writePlace(writer: ByteWriter, place: PartitionPlace): void {
  writer.u8(place.kind === 'file' ? 0 : 1)
  writer.varint(place.ordinal).varint(place.offset).varint(place.byteLength)
}

function readPlace(reader: ByteReader): PartitionPlace {
  const kind = reader.u8() === 0 ? 'file' : 'segment'
  return { kind, ordinal: reader.varint(), offset: reader.varint(), byteLength: reader.varint() }
}

function readKey(reader: ByteReader): PartitionKey {
  const text = reader.text(4 * idLengthMax)
  try {
    return parsePartitionKeyText(text)
  } catch {
    throw corrupt('a partition key is malformed')
  }
}

export interface CommittedRecord {
  readonly place: PartitionPlace
  readonly facts: PartitionFacts
  /** Synced, by its commit or by a clean stop since. */
  isDurable: boolean
}

export interface ReleasedRecord {
  readonly place: PartitionPlace
  readonly key: PartitionKey
}

export class JournalState {
  /** Of the last session; empty when there was none, or it couldn't be known. */
  bootId = ''
  workerEpoch = 0
  readonly committed = new Map<string, CommittedRecord>()
  /** Files told to release that may still be there. */
  readonly released = new Map<string, ReleasedRecord>()
  readonly segmentEnds = new Map<number, number>()
  readonly #unknown: Uint8Array[] = []
  ordinalMax = 0

  apply(record: JournalRecord): void {
    switch (record.type) {
      case 'session':
        this.bootId = record.bootId
        this.workerEpoch = record.workerEpoch
        break
      case 'committed':
        this.#applyCommitted(record.place, record.facts)
        break
      case 'released':
        this.committed.delete(placeText(record.place))
        this.#see(record.place)
        if (record.place.kind === 'file') this.released.set(placeText(record.place), record)
        break
      case 'segment':
        this.#raiseEnd(record.ordinal, record.end)
        break
      case 'durable':
        for (const each of this.committed.values()) each.isDurable = true
        break
      case 'unknown':
        this.#unknown.push(record.body)
        break
    }
  }

  /** The file or segment is gone from the directory: nothing of it need be remembered. */
  forgetFile(ordinal: number): void {
    this.segmentEnds.delete(ordinal)
    this.released.delete(placeText({ kind: 'file', ordinal, offset: 0, byteLength: 0 }))
  }

  forgetCommitted(place: PartitionPlace): void {
    this.committed.delete(placeText(place))
  }

  /** Everything that replay must read to come to this state. */
  records(): JournalRecord[] {
    const all = [...this.committed.values()]
    const committed = (isDurable: boolean): JournalRecord[] =>
      all
        .filter((each) => each.isDurable === isDurable)
        .map(({ place, facts }) => ({ type: 'committed', place, facts }))
    return [
      ...committed(true),
      { type: 'durable' },
      { type: 'session', bootId: this.bootId, workerEpoch: this.workerEpoch },
      ...committed(false),
      ...[...this.released.values()].map((each): JournalRecord => ({ type: 'released', ...each })),
      ...[...this.segmentEnds].map(([ordinal, end]): JournalRecord => ({
        type: 'segment',
        ordinal,
        end,
      })),
      ...this.#unknown.map((body): JournalRecord => ({ type: 'unknown', body })),
    ]
  }

  #applyCommitted(place: PartitionPlace, facts: PartitionFacts): void {
    const isDurable = facts.durability === 'sync'
    this.committed.set(placeText(place), { place, facts, isDurable })
    this.#see(place)
  }

  #see(place: PartitionPlace): void {
    this.ordinalMax = Math.max(this.ordinalMax, place.ordinal)
    if (place.kind === 'segment') this.#raiseEnd(place.ordinal, place.offset + place.byteLength)
  }

  #raiseEnd(ordinal: number, end: number): void {
    this.ordinalMax = Math.max(this.ordinalMax, ordinal)
    this.segmentEnds.set(ordinal, Math.max(this.segmentEnds.get(ordinal) ?? 0, end))
  }
}

function placeText(place: PartitionPlace): string {
  return `${String(place.ordinal)}:${String(place.offset)}`
}
