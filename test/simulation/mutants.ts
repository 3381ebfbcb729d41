// Planted faults: each breaks one rule of the product from outside, so that nothing of it is in the
// product, and the simulation has to notice. They are installed one at a time, and taken out again.

import { ShuffleMaster } from '../../client/master/shuffle-master.ts'
import { BufferPool } from '../../client/common/buffer-pool.ts'
import type { Disk, DiskFile } from '../../client/common/disk.ts'
import { HttpTransport } from '../../client/manager/http-transport.ts'
import { EntryChecksum } from '../../client/protocol/entry.ts'
import { ProtocolConnection } from '../../client/protocol/protocol-connection.ts'
import { CreditShares } from '../../client/read/credit-shares.ts'
import { InputPartition } from '../../client/read/input-partition.ts'
import { JobLists } from '../../shuffle-manager/cluster/job-lists.ts'
import { PartitionLedger } from '../../shuffle-manager/cluster/partition-ledger.ts'
import { ListChanges } from '../../shuffle-worker/control/list-changes.ts'
import { DataStore } from '../../shuffle-worker/storage/data-store.ts'
import { KeyMemory } from '../../shuffle-worker/storage/key-memory.ts'
import { OpenWrite } from '../../shuffle-worker/storage/open-write.ts'
import { PartitionBuilder } from '../../shuffle-worker/storage/partition-builder.ts'
import { PartitionFileWriter } from '../../shuffle-worker/storage/partition-file-writer.ts'
import { RunTable } from '../../shuffle-worker/storage/stored-region-index.ts'
import { seamMutation } from './process.ts'

export interface Mutant {
  readonly name: string
  readonly about: string
  /** Answers how it is taken out again. */
  install(): () => void
}

type Method = (this: unknown, ...args: never[]) => unknown
/** What a mutated method gets: itself as it was, its object, its arguments. */
type Mutation = (
  original: (...args: unknown[]) => unknown,
  self: unknown,
  args: unknown[],
) => unknown

/** Replaces a method, or the getter of a property. */
function patched(owner: { readonly prototype: object }, name: string, mutation: Mutation) {
  return (): (() => void) => {
    const { prototype } = owner
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name)
    if (descriptor === undefined) throw new Error(`there is no ${name} to mutate`)
    const original = (descriptor.value ?? descriptor.get) as Method
    const replaced = function (this: unknown, ...args: unknown[]): unknown {
      return mutation((...given) => original.apply(this, given as never[]), this, args)
    }
    Object.defineProperty(
      prototype,
      name,
      descriptor.get === undefined
        ? { ...descriptor, value: replaced }
        : { ...descriptor, get: replaced },
    )
    return () => {
      Object.defineProperty(prototype, name, descriptor)
    }
  }
}

/** Replaces what processes see of their disks. */
function onDisk(wrap: (disk: Disk) => Disk) {
  return (): (() => void) => {
    seamMutation.disk = wrap
    return () => {
      seamMutation.disk = undefined
    }
  }
}

function withFiles(disk: Disk, wrap: (file: DiskFile, path: string) => DiskFile): Disk {
  return {
    ...disk,
    open: async (path, mode) => wrap(await disk.open(path, mode), path),
  }
}

export const mutants: readonly Mutant[] = [
  {
    name: 'missed-deadline',
    about: 'a call to the manager waits for its answer for ever',
    install: patched(HttpTransport, 'request', (original, _self, [request]) =>
      original({ ...(request as object), timeoutMs: 1e12 }),
    ),
  },
  {
    name: 'credit-off-by-one',
    about: 'both sides grant one credit more than they count',
    install: patched(ProtocolConnection, 'send', (original, _self, args) => {
      const [declaration, channelId, fields] = args as [
        { readonly name: string },
        number,
        { readonly credit: number },
      ]
      if (declaration.name !== 'AddCredit') return original(...args)
      return original(declaration, channelId, { ...fields, credit: fields.credit + 1 })
    }),
  },
  {
    name: 'rename-before-data',
    about: 'a write is answered before the disk has it, so that the rename can come first',
    install: onDisk((disk) =>
      withFiles(disk, (file, path) =>
        path.endsWith('.partial')
          ? {
              ...file,
              write: (parts, position) => {
                const copies = parts.map((part) => Uint8Array.from(part))
                const late = async () => {
                  await file.sizeBytes()
                  await file.write(copies, position)
                }
                late().catch(() => undefined)
                return Promise.resolve()
              },
            }
          : file,
      ),
    ),
  },
  {
    name: 'swallowed-close-error',
    about: 'a file that could not be closed counts as written',
    install: onDisk((disk) =>
      withFiles(disk, (file) => ({ ...file, close: () => file.close().catch(() => undefined) })),
    ),
  },
  {
    name: 'reader-served-partial',
    about: 'readers get a file under the name of one that is being written, which is never renamed',
    install: onDisk((disk) => {
      const partialOf = (path: string) => path.replace(/data$/, 'partial')
      return {
        ...disk,
        rename: (from, to) =>
          from.endsWith('.partial') ? Promise.resolve() : disk.rename(from, to),
        open: (path, mode) => disk.open(mode === 'create' ? path : partialOf(path), mode),
        unlink: (path) => disk.unlink(partialOf(path)),
      }
    }),
  },
  {
    name: 'resumed-write',
    about: 'a write whose connection broke goes on: what had come of it is committed',
    install: () => {
      const subpartitions = new WeakMap<object, number>()
      const undos = [
        patched(DataStore, 'openWrite', async (original, _self, args) => {
          const [request] = args as [{ readonly subpartitionCount: number }]
          const write = (await original(...args)) as object
          subpartitions.set(write, request.subpartitionCount)
          return write
        })(),
        patched(PartitionBuilder, 'finish', (original, self, [totals, durability]) => {
          const { isResumed } = totals as { readonly isResumed?: boolean }
          if (isResumed !== true) return original(totals, durability)
          const { regionCount, byteCount } = self as PartitionBuilder
          return original({ ...(totals as object), regionCount, byteCount }, durability)
        })(),
        patched(OpenWrite, 'abort', async (original, self) => {
          const write = self as { finish(totals: object): Promise<unknown> }
          const count = subpartitions.get(write) ?? 0
          const uncompressedBytes = Array.from({ length: count }, () => 0)
          try {
            await write.finish({ isResumed: true, recordCount: 0, uncompressedBytes })
          } catch {
            await original()
          }
        })(),
      ]
      return () => {
        for (const undo of undos) undo()
      }
    },
  },
  {
    name: 'commit-without-rename',
    about: 'a commit leaves the file under the name of one that is being written',
    install: patched(PartitionFileWriter, 'commit', () => Promise.resolve()),
  },
  {
    name: 'lost-release',
    about: 'a release by the job is forgotten',
    install: patched(ShuffleMaster, 'releasePartitionExternally', () => undefined),
  },
  {
    name: 'stale-epoch-accepted',
    about: 'the manager goes on to obey a job master that was replaced',
    install: () => {
      const epochs = new WeakMap<object, Map<unknown, number>>()
      const undoRegister = patched(JobLists, 'register', (original, self, args) => {
        const epoch = original(...args) as number
        const known = epochs.get(self as object) ?? new Map<unknown, number>()
        epochs.set(self as object, known.set(args[0], epoch))
        return epoch
      })()
      const undoHeld = patched(JobLists, 'held', (original, self, [jobId, jobEpoch]) => {
        const newest = epochs.get(self as object)?.get(jobId) ?? 0
        return original(jobId, Math.max(newest, jobEpoch as number))
      })()
      return () => {
        undoRegister()
        undoHeld()
      }
    },
  },
  {
    name: 'stale-allocation-accepted',
    about: 'a worker takes a write of a key that it was told to release',
    install: () => {
      let isOpening = false
      const undoOpen = patched(DataStore, 'openWrite', (original, _self, args) => {
        isOpening = true
        try {
          return original(...args)
        } finally {
          isOpening = false
        }
      })()
      const undoFate = patched(KeyMemory, 'fateOf', (original, _self, args) =>
        isOpening ? undefined : original(...args),
      )()
      return () => {
        undoOpen()
        undoFate()
      }
    },
  },
  {
    name: 'leaked-buffer-on-close-while-opening',
    about: 'the buffers of a read channel that is closed while it opens are never given back',
    install: patched(CreditShares, 'acquireInitial', async (original, _self, args) => {
      const [{ signal }] = args as [{ readonly signal: AbortSignal }]
      const buffers = (await original(...args)) as { bytes: Uint8Array; recycle: () => void }[]
      return buffers.map((buffer) => ({
        bytes: buffer.bytes,
        recycle: () => {
          if (!signal.aborted) buffer.recycle()
        },
      }))
    }),
  },
  {
    name: 'leaked-buffer-on-close',
    about: 'buffers that are out when their pool closes are never counted back',
    install: () => {
      const closed = new WeakSet<object>()
      const undoClose = patched(BufferPool, 'close', (original, self) => {
        closed.add(self as object)
        return original()
      })()
      const undoAcquire = patched(BufferPool, 'acquire', (original, self) => {
        const buffer = original() as { readonly bytes: Uint8Array; recycle: () => void } | undefined
        if (buffer === undefined) return undefined
        const { bytes } = buffer
        return {
          bytes,
          recycle: () => {
            if (!closed.has(self as object)) buffer.recycle()
          },
        }
      })()
      return () => {
        undoClose()
        undoAcquire()
      }
    },
  },
  {
    name: 'wrong-range-by-one',
    about: 'a range of several subpartitions is served without its last',
    install: patched(RunTable, 'range', (original, _self, [first, last]) =>
      original(first, (last as number) > (first as number) ? (last as number) - 1 : last),
    ),
  },
  {
    name: 'order-broken-inside-range',
    about: 'the runs of a frame are sent in the opposite order',
    install: patched(ProtocolConnection, 'send', (original, _self, args) => {
      const [declaration, channelId, fields, body, ...rest] = args as [
        { readonly name: string },
        number,
        object,
        readonly Uint8Array[] | undefined,
      ]
      if (declaration.name !== 'ReadData' || body === undefined) return original(...args)
      return original(declaration, channelId, fields, [reversedSegments(body)], ...rest)
    }),
  },
  {
    name: 'released-partition-adopted',
    about: 'the manager never asks about what no job claims, after its restart either',
    install: patched(PartitionLedger, 'ask', () => undefined),
  },
  {
    name: 'loss-not-told',
    about: 'the manager knows of a loss and tells nobody',
    install: patched(PartitionLedger, 'tellLoss', () => undefined),
  },
  {
    name: 'commit-not-told',
    about: 'a worker does not tell the manager of commits while it runs',
    install: patched(ListChanges, 'add', (original, _self, args) => {
      const [row] = args as [{ readonly state: string }]
      return row.state === 'committed' ? undefined : original(...args)
    }),
  },
  {
    name: 'release-not-told',
    about: 'a worker does not tell the manager that what it released is gone',
    install: patched(ListChanges, 'add', (original, _self, args) => {
      const [row] = args as [{ readonly state: string }]
      return row.state === 'released' ? undefined : original(...args)
    }),
  },
  {
    name: 'two-attempts-mixed',
    about: 'a gate lets another attempt take over an input that was begun',
    install: patched(InputPartition, 'isBegun', () => false),
  },
  {
    name: 'checksum-not-checked',
    about: 'every entry has the checksum zero',
    install: patched(EntryChecksum, 'of', () => 0),
  },
]

/** A body of ReadData: segments of a header (the fourth field is the length that follows) and entries. */
function reversedSegments(body: readonly Uint8Array[]): Uint8Array {
  const bytes = Buffer.concat(body)
  const segments: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 16 + bytes.readUInt32BE(at + 12)
    segments.unshift(bytes.subarray(at, end))
    at = end
  }
  return Buffer.concat(segments)
}
