// The job master's side of a task process: starts it as a child, passes messages, and notices when
// it is gone or silent.

import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import type { FromTaskProcess, ToTaskProcess } from './task-messages.ts'

export interface TaskProcessHandler {
  onMessage(message: FromTaskProcess): void
  /** The last call: the process is gone. */
  onExit(reason: string): void
}

export interface TaskProcess {
  /** For logs and for whoever wants to look at it. */
  readonly pid: number | undefined
  send(message: ToTaskProcess): void
  /** Ends it at once; `onExit` follows. */
  kill(): void
  /** Lets go of it as the end of this process would: it ends by itself; `onExit` follows. */
  disconnect(): void
}

/** Starts a task process; the handler is called from then on, never during this call. */
export type StartTaskProcess = (handler: TaskProcessHandler) => TaskProcess

/**
 * A small young generation: what a task makes is short-lived, its data lie outside the heap. And the
 * collector by name: between tasks the large memory of one goes before the next one takes its own.
 */
const nodeArguments = ['--max-semi-space-size=2', '--expose-gc']

/**
 * Few threads are enough for a task, and each arena of the allocator keeps memory of its own; blocks
 * that were uncompressed go back to the system when they are freed.
 */
const memoryEnvironment = {
  UV_THREADPOOL_SIZE: '4',
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '16384',
}

/** Starts real processes from the entry beside this file. */
export const forkTaskProcess: StartTaskProcess = (handler) => {
  const isSource = import.meta.url.endsWith('.ts')
  const entry = new URL(
    isSource ? './task-process-main.ts' : './task-process-main.js',
    import.meta.url,
  )
  const child = fork(fileURLToPath(entry), [], {
    execArgv: isSource ? [...nodeArguments, '--import', 'tsx'] : nodeArguments,
    // Output of tasks is for people: results go elsewhere.
    stdio: ['ignore', 2, 2, 'ipc'],
    env: { ...process.env, ...memoryEnvironment },
  })
  return watch(child, handler)
}

function watch(child: ChildProcess, handler: TaskProcessHandler): TaskProcess {
  let hasEnded = false
  const end = (reason: string) => {
    if (hasEnded) return
    hasEnded = true
    handler.onExit(reason)
  }
  child.on('message', (message) => {
    if (!hasEnded) handler.onMessage(message as FromTaskProcess)
  })
  child.once('error', (error) => {
    end(`it could not be started or reached: ${error.message}`)
  })
  child.once('exit', (code, signal) => {
    end(signal === null ? `it exited with ${String(code)}` : `it was ended by ${signal}`)
  })
  return {
    pid: child.pid,
    send: (message) => {
      // A process that is gone meanwhile is told of by its exit.
      if (child.connected) child.send(message, () => undefined)
    },
    kill: () => {
      child.kill('SIGKILL')
    },
    disconnect: () => {
      if (child.connected) child.disconnect()
    },
  }
}
