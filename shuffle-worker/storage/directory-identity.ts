// Who a data directory belongs to: one small checksummed text file with the worker, the cluster and
// the epoch counter. Replaced as a whole and synced, so that it is always one or the other. Where there
// is no room for a second it is written over: it is the same but for the epoch, within one sector, and
// what a full disk holds is served on.

import { crc32 } from '@node-rs/crc32'
import { ShuffleError } from '../../client/common/errors.ts'
import {
  parseClusterId,
  parseWorkerId,
  type ClusterId,
  type WorkerId,
} from '../../client/common/ids.ts'
import { corrupt } from './byte-codec.ts'
import type { DirectoryLayout } from './directory-layout.ts'
import { isDiskFull, systemCodeOf } from './disk-operation.ts'
import { ignoreMissing } from './journal.ts'
import type { QueuedDisk, QueuedFile } from './queued-disk.ts'

export interface DirectoryIdentity {
  readonly workerId: WorkerId
  readonly clusterId: ClusterId
  readonly workerEpoch: number
}

const identityVersion = '1'
/** Longer than any identity. */
const identityLengthMax = 4096

export function encodeIdentity(identity: DirectoryIdentity): Uint8Array {
  const { workerId, clusterId, workerEpoch } = identity
  const text = `sluice-directory ${identityVersion}\nworker ${workerId}\ncluster ${clusterId}\nepoch ${String(workerEpoch)}\n`
  return Buffer.from(`${text}crc ${checksumText(text)}\n`, 'latin1')
}

export function decodeIdentity(bytes: Uint8Array, path: string): DirectoryIdentity {
  const text = Buffer.from(bytes).toString('latin1')
  const version = /^sluice-directory (\S+)\n/.exec(text)?.[1]
  if (version !== undefined && version !== identityVersion) {
    throw new ShuffleError(
      'UNSUPPORTED_VERSION',
      `${path} has version ${version}, this worker reads ${identityVersion}; start the worker that wrote it, or move the directory away`,
      { fields: { path, version } },
    )
  }
  const match =
    /^(sluice-directory 1\nworker (\S+)\ncluster (\S+)\nepoch (\d{1,15})\n)crc ([0-9a-f]{8})\n$/.exec(
      text,
    )
  if (match === null || checksumText(match[1] ?? '') !== match[5]) {
    throw corrupt(`the identity file ${path} is not whole; move the directory away`)
  }
  return {
    workerId: parseWorkerId(match[2] ?? ''),
    clusterId: parseClusterId(match[3] ?? ''),
    workerEpoch: Number(match[4]),
  }
}

/** Undefined in a directory that is new. */
export async function readIdentity(
  disk: QueuedDisk,
  layout: DirectoryLayout,
): Promise<DirectoryIdentity | undefined> {
  let file: QueuedFile
  try {
    file = await disk.open(layout.identity, 'read')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const target = Buffer.alloc(identityLengthMax)
    const count = await file.read(target, 0).result
    return decodeIdentity(target.subarray(0, count), layout.identity)
  } finally {
    // What was read is whole or was refused; that the close failed the disk's health knows.
    await file.close().catch(() => undefined)
  }
}

/** Durable when it resolves. NO_SPACE only in a directory that is new. */
export async function writeIdentity(
  disk: QueuedDisk,
  layout: DirectoryLayout,
  identity: DirectoryIdentity,
): Promise<void> {
  const bytes = encodeIdentity(identity)
  await disk.unlink(layout.identityNew).catch(ignoreMissing)
  try {
    await writeWhole(await disk.open(layout.identityNew, 'create'), bytes)
  } catch (error) {
    if (!isDiskFull(error)) throw error
    await disk.unlink(layout.identityNew).catch(ignoreMissing)
    const present = await disk.open(layout.identity, 'update').catch(ignoreMissing)
    if (present === undefined) throw error
    // Never shorter than what it says now: its epoch is higher.
    await writeWhole(present, bytes)
    return
  }
  await disk.rename(layout.identityNew, layout.identity)
  await disk.syncDirectory(layout.path)
}

async function writeWhole(file: QueuedFile, bytes: Uint8Array): Promise<void> {
  try {
    await file.write([bytes], 0).result
    await file.sync()
  } finally {
    await file.close()
  }
}

function checksumText(text: string): string {
  return crc32(Buffer.from(text, 'latin1')).toString(16).padStart(8, '0')
}
