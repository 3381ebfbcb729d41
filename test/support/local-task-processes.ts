// Task processes that are none: hosts in this process over a MemoryShuffle, with messages that pass
// as JSON as the real ones do. A test can end one as a kill would.

import { realClock } from '../../client/common/clock.ts'
import type { TaskProcess, TaskProcessHandler } from '../../runtime/task-process.ts'
import { TaskHost } from '../../runtime/task-host.ts'
import type { FromTaskProcess, ToTaskProcess } from '../../runtime/task-messages.ts'
import type { TaskRegistry } from '../../runtime/task.ts'
import type { MemoryShuffle } from './memory-shuffle.ts'

export class LocalTaskProcesses {
  readonly #shuffle: MemoryShuffle
  readonly #tasks: TaskRegistry
  readonly #living = new Set<LocalTaskProcess>()
  /** Messages sent to all of them, in order. */
  readonly sent: ToTaskProcess[] = []
  /** Processes started so far. */
  started = 0

  constructor(shuffle: MemoryShuffle, tasks: TaskRegistry) {
    this.#shuffle = shuffle
    this.#tasks = tasks
  }

  get living(): readonly LocalTaskProcess[] {
    return [...this.#living]
  }

  readonly start = (handler: TaskProcessHandler): TaskProcess => {
    this.started += 1
    const process = new LocalTaskProcess({
      pid: this.started,
      handler,
      shuffle: this.#shuffle,
      tasks: this.#tasks,
      onSent: (message) => this.sent.push(message),
      onEnd: () => this.#living.delete(process),
    })
    this.#living.add(process)
    return process
  }
}

interface LocalOptions {
  readonly pid: number
  readonly handler: TaskProcessHandler
  readonly shuffle: MemoryShuffle
  readonly tasks: TaskRegistry
  readonly onSent: (message: ToTaskProcess) => void
  readonly onEnd: () => void
}

export class LocalTaskProcess implements TaskProcess {
  readonly pid: number
  readonly #options: LocalOptions
  #host: TaskHost | undefined
  #hasEnded = false

  constructor(options: LocalOptions) {
    this.pid = options.pid
    this.#options = options
  }

  send(message: ToTaskProcess): void {
    const copy = JSON.parse(JSON.stringify(message)) as ToTaskProcess
    this.#options.onSent(copy)
    setImmediate(() => {
      if (!this.#hasEnded) this.#receive(copy)
    })
  }

  kill(): void {
    this.end('it was killed by the test')
  }

  disconnect(): void {
    this.end('it was let go')
  }

  /** As when the process dies: nothing it had to say is heard any more. */
  end(reason: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#options.onEnd()
    void this.#host?.close()
    setImmediate(() => {
      this.#options.handler.onExit(reason)
    })
  }

  #receive(message: ToTaskProcess): void {
    switch (message.kind) {
      case 'set-up':
        this.#host = new TaskHost({
          clock: realClock,
          environment: this.#options.shuffle.environment(),
          tasks: this.#options.tasks,
          settings: message,
          name: `local-${this.pid}`,
          peakMemoryBytes: () => 1,
          collectGarbage: () => undefined,
          send: (answer) => {
            this.#answer(answer)
          },
        })
        this.#answer({ kind: 'ready' })
        return
      case 'inputs':
        this.#host?.setInputs(message)
        return
      case 'start':
        this.#host?.start(message)
        return
      case 'cancel':
        this.#host?.cancel(message.run)
        return
      case 'close':
        void this.#host?.close().then(() => {
          this.end('it closed')
        })
    }
  }

  #answer(message: FromTaskProcess): void {
    const copy = JSON.parse(JSON.stringify(message)) as FromTaskProcess
    setImmediate(() => {
      if (!this.#hasEnded) this.#options.handler.onMessage(copy)
    })
  }
}
