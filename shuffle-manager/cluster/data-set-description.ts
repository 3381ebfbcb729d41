// The description of a data set for its consumers, made once and kept as bytes while nothing of the
// data set changes. Its size grows with the producers alone. Owned by the manager.

import { encodeAttempts } from '../../client/manager/key-columns.ts'
import type { PartitionKey } from '../../client/common/ids.ts'
import type { CallAnswer } from '../../client/manager/route.ts'
import type { managerApi } from '../../client/manager/api.ts'
import type { PartitionTable } from './partition-table.ts'
import type { WorkerRegistry } from './worker-registry.ts'

type Description = CallAnswer<typeof managerApi.describeDataSet>
type GroupState = Description['groups'][number]['state']

interface Kept {
  readonly version: string
  readonly bytes: Buffer
}

export class DataSetDescriptions {
  readonly #workers: WorkerRegistry
  readonly #managerEpoch: number
  readonly #kept = new WeakMap<PartitionTable, Kept>()
  /** How often one was made; a test holds that asking does not make it again. */
  madeCount = 0

  constructor(options: { readonly workers: WorkerRegistry; readonly managerEpoch: number }) {
    this.#workers = options.workers
    this.#managerEpoch = options.managerEpoch
  }

  /** The JSON of the answer, without content when `knownVersion` is still right. */
  describe(table: PartitionTable | undefined, knownVersion: string | undefined): Buffer {
    if (table === undefined) {
      return encode({ version: `${String(this.#managerEpoch)}.none`, workers: [], groups: [] })
    }
    const version = this.#versionOf(table)
    if (version === knownVersion) return encode({ version, workers: [], groups: [] })
    const kept = this.#kept.get(table)
    if (kept?.version === version) return kept.bytes
    this.madeCount++
    const bytes = encode(this.#make(table, version))
    this.#kept.set(table, { version, bytes })
    return bytes
  }

  /** Addresses of holders are part of it: a worker that comes back may have another. */
  #versionOf(table: PartitionTable): string {
    let addresses = 0
    for (const number of table.countsByWorker.keys()) {
      addresses += this.#workers.at(number).addressVersion
    }
    const parts = [this.#managerEpoch, table.number, table.version, addresses]
    return parts.join('.')
  }

  #make(table: PartitionTable, version: string): Description {
    const workers: Description['workers'] = []
    const positions = new Map<number, number>()
    const rowsByState = new Map<GroupState, number[]>()
    for (const row of table.rows()) {
      const state = table.state(row)
      if (!table.has(row, 'claimed') || state === 'releasing') continue
      const shown = state === 'writing' ? 'allocated' : state
      const rows = rowsByState.get(shown)
      if (rows === undefined) rowsByState.set(shown, [row])
      else rows.push(row)
    }
    const holderOf = (row: number): number => {
      const number = table.worker(row)
      const holder = positions.get(number) ?? workers.push(this.#workers.at(number).address) - 1
      positions.set(number, holder)
      return holder
    }
    const groups = [...rowsByState].map(([state, rows]) => ({
      state,
      ...encodeAttempts(rows.map((row) => attemptAt(table, row))),
      holders: rows.map(holderOf),
    }))
    return {
      version,
      ...(table.facts === undefined ? {} : { facts: table.facts }),
      workers,
      groups,
    }
  }
}

function attemptAt(
  table: PartitionTable,
  row: number,
): Pick<PartitionKey, 'partitionIndex' | 'attemptId'> {
  return { partitionIndex: table.index(row), attemptId: table.attemptId(row) }
}

function encode(description: Description): Buffer {
  return Buffer.from(JSON.stringify(description))
}
