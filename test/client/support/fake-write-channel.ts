// The fake worker's side of a write: checks everything a producer has to keep to, and stores.

import { expect } from 'vitest'
import { partitionKeyText } from '../../../client/common/ids.ts'
import { ByteCountAssembler } from '../../../client/protocol/byte-counts.ts'
import { broadcastSubpartition } from '../../../client/protocol/entry.ts'
import { messages, type MessageFields } from '../../../client/protocol/messages.ts'
import type { ChannelMessage } from '../../../client/protocol/protocol-connection.ts'
import { entriesOf } from './fake-worker.ts'
import type { FakeConnection, StoredEntry, StoredRegion } from './fake-worker.ts'

const creditAtOnce = 4

export class FakeWriteChannel {
  readonly #connection: FakeConnection
  readonly #id: number
  readonly #open: MessageFields<'OpenWrite'>
  readonly #regions: StoredRegion[] = []
  readonly #bytes: ByteCountAssembler
  #boundBytes = 0
  #credit = 0
  #isRegionOpen = false

  constructor(connection: FakeConnection, id: number, open: MessageFields<'OpenWrite'>) {
    this.#connection = connection
    this.#id = id
    this.#open = open
    this.#bytes = new ByteCountAssembler(open.subpartitionCount)
    if (!connection.worker.faults.withholdsOpening) {
      connection.protocol.send(messages.WriteOpened, id, {})
    }
  }

  get credit(): number {
    return this.#credit
  }

  onMessage(message: ChannelMessage, body: Uint8Array): void {
    switch (message.name) {
      case 'RegionStart':
        this.#onRegionStart(message.fields)
        return
      case 'RegionFinish':
        this.#onRegionFinish(message.fields)
        return
      case 'WriteFinish':
        this.#onWriteFinish(message.fields, body)
        return
      default:
        throw new Error(`${message.name} on a write channel`)
    }
  }

  onData(body: Uint8Array): void {
    expect(this.#isRegionOpen).toBe(true)
    expect(this.#credit).toBeGreaterThan(0)
    expect(body.length).toBeLessThanOrEqual(this.#open.bufferSizeBytes)
    this.#credit -= 1
    const region = this.#regions.at(-1)
    for (const entry of entriesOf(body)) {
      this.#check(region, entry)
      region?.entries.push(entry)
    }
    if (this.#credit < creditAtOnce) this.grant(creditAtOnce)
  }

  grant(credit: number): void {
    if (this.#connection.worker.faults.withholdsCredit) return
    this.#credit += credit
    const regionIndex = this.#regions.length - 1
    this.#connection.protocol.send(messages.AddCredit, this.#id, { credit, regionIndex })
  }

  #check(region: StoredRegion | undefined, entry: StoredEntry): void {
    const before = region?.entries.at(-1)
    if (region?.isBroadcast === true) expect(entry.subpartition).toBe(broadcastSubpartition)
    else expect(entry.subpartition).toBeLessThan(this.#open.subpartitionCount)
    if (before === undefined) return
    expect(entry.subpartition).toBeGreaterThanOrEqual(before.subpartition)
    // A run ends exactly where the next begins.
    expect(before.isLastOfRun).toBe(entry.subpartition !== before.subpartition)
  }

  #onRegionStart(fields: MessageFields<'RegionStart'>): void {
    expect(this.#isRegionOpen).toBe(false)
    expect(fields.regionIndex).toBe(this.#regions.length)
    this.#regions.push({ isBroadcast: fields.isBroadcast, entries: [] })
    this.#boundBytes = fields.boundBytes
    this.#isRegionOpen = true
    this.#credit = 0
    this.grant(creditAtOnce)
  }

  #onRegionFinish(fields: MessageFields<'RegionFinish'>): void {
    const region = this.#regions.at(-1)
    const entries = region?.entries ?? []
    expect(fields.entryCount).toBe(entries.length)
    expect(fields.byteCount).toBe(byteCountOf(entries))
    expect(fields.byteCount).toBeLessThanOrEqual(this.#boundBytes)
    expect(entries.length).toBeGreaterThan(0)
    expect(entries.at(-1)?.isLastOfRun).toBe(true)
    this.#isRegionOpen = false
  }

  #onWriteFinish(fields: MessageFields<'WriteFinish'>, body: Uint8Array): void {
    this.#bytes.addPage({ ...fields, body })
    const { worker, protocol } = this.#connection
    if (!fields.isLast || worker.faults.withholdsCommit) return
    const all = this.#regions.flatMap(({ entries }) => entries)
    expect(fields.regionCount).toBe(this.#regions.length)
    expect(fields.byteCount).toBe(byteCountOf(all))
    worker.partitions.set(partitionKeyText(this.#open.key), {
      regions: this.#regions,
      subpartitionCount: this.#open.subpartitionCount,
      recordCount: fields.recordCount,
      bytesBySubpartition: this.#bytes.counts,
    })
    this.#connection.writes.delete(this.#id)
    protocol.send(messages.WriteCommitted, this.#id, {
      regionCount: this.#regions.length,
      entryCount: all.length + (worker.faults.miscounts ? 1 : 0),
      byteCount: byteCountOf(all),
      storedBytes: byteCountOf(all) + 100,
      durability: 'none',
    })
  }
}

function byteCountOf(entries: readonly StoredEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes.length, 0)
}
