// A process of the bench, as its driver sees it: calls by name, answers as promises.

import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RoleAnswer, RoleCall, RoleInput, RoleName, RoleOutput } from './role-messages.ts'

export class RoleProcess {
  readonly name: string
  readonly #child: ChildProcess
  readonly #calls = new Map<
    number,
    { readonly resolve: (output: unknown) => void; readonly reject: (error: Error) => void }
  >()
  #nextId = 1

  constructor(name: string, environment: Readonly<Record<string, string>> = {}) {
    this.name = name
    const main = fileURLToPath(new URL('./role-main.js', import.meta.url))
    this.#child = fork(main, [], {
      serialization: 'advanced',
      // As many file calls at a time as the deepest reference wants.
      env: { ...process.env, UV_THREADPOOL_SIZE: '16', ...environment },
    })
    this.#child.on('message', (answer: RoleAnswer) => {
      const call = this.#calls.get(answer.id)
      this.#calls.delete(answer.id)
      if ('error' in answer) call?.reject(new Error(`${name}: ${answer.error}`))
      else call?.resolve(answer.output)
    })
    this.#child.once('exit', (code, signal) => {
      const error = new Error(`process ${name} ended with ${signal ?? String(code)}`)
      for (const call of this.#calls.values()) call.reject(error)
      this.#calls.clear()
    })
  }

  get pid(): number {
    const { pid } = this.#child
    if (pid === undefined) throw new Error(`process ${this.name} did not start`)
    return pid
  }

  call<N extends RoleName>(name: N, input: RoleInput<N>): Promise<RoleOutput<N>> {
    const call: RoleCall = { id: this.#nextId, name, input }
    this.#nextId += 1
    return new Promise((resolve, reject) => {
      this.#calls.set(call.id, {
        resolve: (output) => {
          resolve(output as RoleOutput<N>)
        },
        reject,
      })
      this.#child.send(call)
    })
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.disconnect()
    await exited
  }
}
