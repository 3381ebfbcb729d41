// The entry of a task process. It lives as long as its parent's channel: when that closes, however
// the parent ended, it removes what it was told to and exits.

import { readFileSync, rmSync } from 'node:fs'

import {
  realWorld,
  ShuffleError,
  shuffleServiceFactory,
  type ShuffleEnvironment,
} from '../client/index.ts'
import { peakMemoryBytes } from './peak-memory.ts'
import { TaskHost } from './task-host.ts'
import type { FromTaskProcess, SetUpMessage, ToTaskProcess } from './task-messages.ts'
import type { TaskRegistry } from './task.ts'

let removeWhenOrphaned: readonly string[] = []
let host: TaskHost | undefined
let settingUp: Promise<void> = Promise.resolve()

process.on('disconnect', () => {
  endOrphaned()
})
// The terminal sends these to the whole group; the job master decides when a task process ends.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message) => {
  receive(message as ToTaskProcess)
})
if (!process.connected) endOrphaned()

function receive(message: ToTaskProcess): void {
  switch (message.kind) {
    case 'set-up':
      removeWhenOrphaned = message.removeWhenOrphaned
      settingUp = setUp(message).catch(endBroken)
      return
    case 'inputs':
      host?.setInputs(message)
      return
    case 'start':
      host?.start(message)
      return
    case 'cancel':
      host?.cancel(message.run)
      return
    case 'close':
      void close()
  }
}

async function setUp(message: SetUpMessage): Promise<void> {
  const module = (await import(message.tasksModule)) as { readonly tasks?: TaskRegistry }
  if (module.tasks === undefined) {
    throw new ShuffleError('INVALID_ARGUMENT', `${message.tasksModule} exports no tasks`)
  }
  host = new TaskHost({
    clock: realWorld().clock,
    environment: createEnvironment(message),
    tasks: module.tasks,
    settings: message,
    name: String(process.pid),
    send,
    peakMemoryBytes,
    collectGarbage: () => {
      globalThis.gc?.()
    },
  })
  send({ kind: 'ready' })
}

function createEnvironment({ cluster, memory, recordBytesMax }: SetUpMessage): ShuffleEnvironment {
  const token =
    cluster.tokenFile === undefined ? undefined : readFileSync(cluster.tokenFile, 'utf8').trim()
  return shuffleServiceFactory.createShuffleEnvironment({
    managerUrl: cluster.managerUrl,
    clusterId: cluster.clusterId,
    ...(token === undefined ? {} : { token }),
    options: {
      partitionMemoryBytes: memory.outputBytes,
      gateMemoryBytes: memory.gateBytes,
      recordBytesMax,
    },
  })
}

function send(message: FromTaskProcess): void {
  // A channel that closes meanwhile ends this process anyway.
  if (process.connected) process.send?.(message, () => undefined)
}

async function close(): Promise<void> {
  await settingUp
  await host?.close()
  process.disconnect()
  process.exit(0)
}

function endBroken(error: unknown): never {
  process.stderr.write(`task process: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

function endOrphaned(): void {
  for (const path of removeWhenOrphaned) rmSync(path, { recursive: true, force: true })
  process.exit(1)
}
