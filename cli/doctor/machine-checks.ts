// What can be said of a configuration on the machine that it is for, before anything is started: files,
// disks, ports, limits.

import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { totalmem } from 'node:os'
import path from 'node:path'
import { parseDataDirectories, type WorkerOptions } from '../../shuffle-worker/options.ts'
import type { ManagerOptions } from '../../shuffle-manager/options.ts'
import {
  checkDescriptors,
  threadPoolSize,
  threadsNeededFor,
} from '../../shuffle-worker/process-limits.ts'
import { humanBytes } from '../text-table.ts'
import { failure, messageOf, ok, warning, type Check } from './check.ts'

export interface Machine {
  readonly workingDirectory: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Of /proc/self/limits; empty where there is none. */
  readonly limitsText: string
}

/** JavaScript, code and libraries of a worker beside its pool. */
const besidePoolBytes = 300 * 1024 * 1024

export async function managerMachineChecks(options: ManagerOptions): Promise<Check[]> {
  return [
    ...(await tokenChecks('manager', options.tokenFile)),
    await directoryChecks('manager: state directory', options.stateDirectory),
    await portCheck('manager: port', options.host, options.port),
  ]
}

export async function workerMachineChecks(
  options: WorkerOptions,
  machine: Machine,
): Promise<Check[]> {
  const directories = parseDataDirectories(options.dataDirectories, machine.workingDirectory)
  const checks = await tokenChecks('worker', options.tokenFile)
  const devices = new Map<number, string>()
  for (const directory of directories) {
    checks.push(...(await diskChecks(directory.path, options, devices)))
  }
  checks.push(
    await portCheck('worker: data port', options.bindHost, options.dataPort),
    await portCheck('worker: HTTP port', options.bindHost, options.httpPort),
    threadCheck(
      directories.map(({ kind }) => kind),
      machine,
    ),
    fileCheck(options, machine),
    memoryCheck(options),
  )
  return checks
}

async function tokenChecks(role: string, file: string | undefined): Promise<Check[]> {
  const what = `${role}: token`
  if (file === undefined) {
    return [
      warning(
        what,
        'there is none: everyone who reaches the ports reads and deletes all data',
        'set token-file',
      ),
    ]
  }
  try {
    await access(file, constants.R_OK)
    const { mode, size } = await stat(file)
    if (size === 0)
      return [failure(what, `${file} is empty`, 'put the secret of the cluster into it')]
    if ((mode & 0o004) !== 0) {
      return [warning(what, `${file} can be read by everyone on this machine`, `chmod o-r ${file}`)]
    }
    return [ok(what, file)]
  } catch (error) {
    return [failure(what, messageOf(error), 'give a file that this user can read')]
  }
}

/** The directory itself, or the first one above it that exists: there it would be made. */
async function directoryChecks(what: string, directory: string): Promise<Check> {
  let existing = directory
  for (;;) {
    try {
      await access(existing, constants.R_OK | constants.W_OK | constants.X_OK)
      return ok(what, existing === directory ? directory : `${directory}, to be made`)
    } catch (error) {
      const above = path.dirname(existing)
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!isMissing || above === existing) {
        return failure(what, messageOf(error), 'give it to the user that the process runs as')
      }
      existing = above
    }
  }
}

async function diskChecks(
  directory: string,
  { minReservedSpaceBytes }: WorkerOptions,
  devices: Map<number, string>,
): Promise<Check[]> {
  const what = `worker: disk ${directory}`
  const writable = await directoryChecks(what, directory)
  if (writable.status !== 'ok') return [writable]
  const place = await existingPlace(directory)
  const { bavail, bsize, blocks } = await statfs(place)
  const free = bavail * bsize
  const seen = `${humanBytes(free)} of ${humanBytes(blocks * bsize)} free`
  const checks: Check[] = [
    free > minReservedSpaceBytes
      ? ok(what, seen)
      : failure(
          what,
          `${seen}, and ${humanBytes(minReservedSpaceBytes)} stay reserved`,
          'nothing could be written: free space, or lower min-reserved-space',
        ),
  ]
  const { dev } = await stat(place)
  const other = devices.get(dev)
  if (other !== undefined) {
    checks.push(
      warning(
        what,
        `on the same file system as ${other}`,
        'give each disk one directory: two on one disk disturb each other',
      ),
    )
  }
  devices.set(dev, directory)
  return checks
}

async function existingPlace(directory: string): Promise<string> {
  let place = directory
  for (;;) {
    try {
      await stat(place)
      return place
    } catch {
      const above = path.dirname(place)
      if (above === place) return place
      place = above
    }
  }
}

/** Free, or taken by a process of Sluice itself. */
async function portCheck(what: string, host: string, port: number): Promise<Check> {
  if (port === 0) return ok(what, 'any that is free')
  const problem = await new Promise<string | undefined>((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code ?? error.message)
    })
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => {
        resolve(undefined)
      })
    })
  })
  if (problem === undefined) return ok(what, `${host}:${port} is free`)
  if (problem === 'EADDRINUSE') {
    return warning(
      what,
      `${host}:${port} is in use`,
      'well if it is this service that runs; else choose another port',
    )
  }
  return failure(
    what,
    `${host}:${port}: ${problem}`,
    'choose an address of this machine and a port that the user may take',
  )
}

function threadCheck(kinds: readonly ('ssd' | 'hdd')[], { environment }: Machine): Check {
  const what = 'worker: thread pool'
  const [size, needed] = [threadPoolSize(environment), threadsNeededFor(kinds)]
  const seen = `${size} threads here, ${needed} are needed`
  if (size >= needed) return ok(what, seen)
  return warning(
    what,
    seen,
    `set UV_THREADPOOL_SIZE=${needed}: else the worker starts itself once more, as a child process`,
  )
}

function fileCheck(options: WorkerOptions, { limitsText }: Machine): Check {
  const what = 'worker: open files'
  try {
    checkDescriptors(limitsText, options)
    return ok(what, 'as many as it may need')
  } catch (error) {
    return failure(
      what,
      messageOf(error),
      'the limit of a service is LimitNOFILE; this one is of the shell',
    )
  }
}

function memoryCheck({ memoryBytes }: WorkerOptions): Check {
  const what = 'worker: memory'
  const total = totalmem()
  const needed = memoryBytes + besidePoolBytes
  const seen = `the pool and its process take ${humanBytes(needed)} of this machine's ${humanBytes(total)}`
  if (needed <= total / 2) return ok(what, seen)
  return warning(what, seen, 'leave room for the page cache: lower memory')
}
