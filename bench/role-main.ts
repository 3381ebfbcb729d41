// The process of one part of the bench that is not a service: producers, consumers, a reference.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ShuffleEnvironment } from '../client/index.ts'
import { checksumCost } from './checksum-cost.ts'
import { appendFiles, readFiles } from './disk-reference.ts'
import { runLifeCycles } from './life-cycles.ts'
import { isAtRest, openEnvironment, read, write } from './load-tasks.ts'
import { openSink, pump, type Sink } from './loopback-pump.ts'
import type { RoleAnswer, RoleCall, RoleInput, RoleName, RoleOutput } from './role-messages.ts'

const restTimeoutMs = 10_000
let environment: ShuffleEnvironment | undefined
let sink: Sink | undefined

type Handlers = {
  readonly [N in RoleName]: (input: RoleInput<N>) => Promise<RoleOutput<N>> | RoleOutput<N>
}

const handlers: Handlers = {
  open: async (place) => {
    await environment?.close()
    environment = openEnvironment(place)
    return undefined
  },
  write: (task) => write(opened(environment), task),
  read: (task) => read(opened(environment), task),
  lifeCycles: (task) => runLifeCycles(task),
  append: (shape) => appendFiles(shape),
  readBack: (shape) => readFiles(shape, shape.order),
  checksum: (task) => checksumCost(task),
  openSink: async () => {
    sink ??= await openSink()
    return sink.port
  },
  received: async (bytes) => {
    await opened(sink).received(bytes)
    return undefined
  },
  pump: (load) => pump(load),
  rest: async () => {
    const deadlineMs = performance.now() + restTimeoutMs
    while (environment !== undefined && !isAtRest(environment.statistics())) {
      if (performance.now() > deadlineMs) throw new Error('the client holds something at its end')
      await sleep(5)
    }
    return undefined
  },
}

process.on('message', (call: RoleCall) => {
  const handler = handlers[call.name] as (input: unknown) => unknown
  Promise.resolve()
    .then(() => handler(call.input))
    .then(
      (output) => {
        answer({ id: call.id, output })
      },
      (error: unknown) => {
        answer({ id: call.id, error: error instanceof Error ? (error.stack ?? '') : String(error) })
      },
    )
})
process.on('disconnect', () => {
  process.exit()
})

function answer(message: RoleAnswer): void {
  process.send?.(message)
}

function opened<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('not opened yet')
  return value
}
