// A network of machines in memory. Each process sees it through `at(host, life)`, a Network of its
// own; a test sees the links and breaks them: cut, silent, refused, partitioned, a machine gone.

import type { Duplex } from 'node:stream'
import type {
  Address,
  Connection,
  ConnectOptions,
  Listener,
  Network,
} from '../../client/common/network.ts'
import type { VirtualClock } from './virtual-clock.ts'
import { VirtualConnection, VirtualStream } from './virtual-connection.ts'
import type { Life } from './virtual-life.ts'
import { linkError, VirtualLink } from './virtual-link.ts'
import type { VirtualSide } from './virtual-link.ts'
import type { PipeSettings } from './virtual-pipe.ts'
import type { VirtualRandom } from './virtual-random.ts'

export interface VirtualNetworkOptions {
  readonly clock: VirtualClock
  readonly random: VirtualRandom
  readonly settings?: Partial<PipeSettings>
  readonly note?: (line: string) => void
}

type Accept = (side: VirtualSide, remote: Address) => void

interface OpenListener {
  readonly life: Life
  readonly accept: Accept
}

const defaultSettings: PipeSettings = {
  latencyMs: [0.05, 0.5],
  chunking: 'random',
  windowBytes: 256 * 1024,
}
const ownNames = new Set(['localhost', '127.0.0.1', '0.0.0.0', '::', '::1'])
const ephemeralPortMin = 40_000

export class VirtualNetwork {
  readonly #options: VirtualNetworkOptions
  readonly #listeners = new Map<string, OpenListener>()
  readonly #links = new Set<VirtualLink>()
  readonly #hosts = new Set<string>()
  readonly #names = new Map<string, string>()
  readonly #partitions = new Set<string>()
  readonly #refused = new Map<string, number>()
  #nextPort = ephemeralPortMin
  #settings: PipeSettings

  constructor(options: VirtualNetworkOptions) {
    this.#options = options
    this.#settings = { ...defaultSettings, ...options.settings }
  }

  /** Open links, oldest first. */
  get links(): readonly VirtualLink[] {
    return [...this.#links]
  }

  get listenerCount(): number {
    return this.#listeners.size
  }

  /** For links made from now on. */
  configure(settings: Partial<PipeSettings>): void {
    this.#settings = { ...this.#settings, ...settings }
  }

  /** Other names of a machine, resolved at each dial; `undefined` removes the name. */
  setName(name: string, host: string | undefined): void {
    if (host === undefined) this.#names.delete(name)
    else this.#names.set(name, host)
  }

  /** Open links between two machines, or of one. */
  linksOf(host: string, other?: string): readonly VirtualLink[] {
    return this.links.filter(
      (link) => link.hosts.includes(host) && (other === undefined || link.hosts.includes(other)),
    )
  }

  /** The next `count` dials of `host` are refused, all unless given. */
  refuse(host: string, count = Infinity): void {
    this.#refused.set(host, count)
  }

  accept(host: string): void {
    this.#refused.delete(host)
  }

  /** Nothing passes between the two: links fall silent, dials get no answer. */
  partition(host: string, other: string): void {
    this.#partitions.add(pairKey(host, other))
    for (const link of this.linksOf(host, other)) link.silence()
  }

  /** What `from` sends to `to` is not heard, and dials between the two get no answer. */
  partitionOneWay(from: string, to: string): void {
    this.#partitions.add(pairKey(from, to))
    for (const link of this.linksOf(from, to)) {
      const side = link.hosts[0] === from ? link.client : link.server
      side.outgoing.silence(true)
    }
  }

  heal(host: string, other: string): void {
    this.#partitions.delete(pairKey(host, other))
    for (const link of this.linksOf(host, other)) link.silence(false)
  }

  /** The network as a process on `host` sees it. */
  at(host: string, life: Life): Network {
    this.#hosts.add(host)
    const endpoint = (side: VirtualSide, remote: Address) => ({
      clock: this.#options.clock,
      life,
      side,
      remote,
    })
    return {
      listen: (address, onConnection: (connection: Connection) => void) =>
        this.#listen(host, life, address, (side, remote) => {
          onConnection(new VirtualConnection(endpoint(side, remote)))
        }),
      listenStreams: (address, onStream: (stream: Duplex) => void) =>
        this.#listen(host, life, address, (side, remote) => {
          onStream(new VirtualStream({ ...endpoint(side, remote), allowHalfOpen: true }))
        }),
      connect: async (options) => {
        const side = await life.heard(this.#dial(host, life, options))
        return new VirtualConnection(endpoint(side, options))
      },
      connectStream: async (options) => {
        const side = await life.heard(this.#dial(host, life, options))
        return new VirtualStream({ ...endpoint(side, options), allowHalfOpen: false })
      },
    }
  }

  #listen(host: string, life: Life, address: Address, accept: Accept): Promise<Listener> {
    if (!ownNames.has(address.host) && this.#resolve(host, address.host) !== host) {
      return Promise.reject(linkError('EADDRNOTAVAIL', `${address.host} is not ${host}`))
    }
    const port = address.port === 0 ? this.#nextPort++ : address.port
    const key = listenerKey(host, port)
    if (this.#listeners.has(key)) {
      return Promise.reject(linkError('EADDRINUSE', `${key} is taken`))
    }
    const listener = { life, accept }
    this.#listeners.set(key, listener)
    const close = () => {
      if (this.#listeners.get(key) === listener) this.#listeners.delete(key)
      return Promise.resolve()
    }
    life.atEnd(() => void close())
    return life.heard(this.#after(0, () => ({ address: { host: address.host, port }, close })))
  }

  #dial(from: string, life: Life, options: ConnectOptions): Promise<VirtualSide> {
    const { clock, random } = this.#options
    const { signal, timeoutMs } = options
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    return new Promise((resolve, reject) => {
      let isDone = false
      const settle = (outcome: VirtualSide | undefined, error?: unknown) => {
        isDone = true
        timer.cancel()
        signal?.removeEventListener('abort', onAbort)
        if (outcome === undefined) reject(error)
        else resolve(outcome)
      }
      const onAbort = () => {
        settle(undefined, signal?.reason)
      }
      const timer = clock.schedule(timeoutMs, () => {
        const what = `no connection to ${options.host}:${String(options.port)}`
        settle(undefined, linkError('ETIMEDOUT', `${what} within ${String(timeoutMs)} ms`))
      })
      signal?.addEventListener('abort', onAbort, { once: true })
      clock.schedule(random.between(...this.#settings.latencyMs), () => {
        if (isDone || !life.isAlive) return
        const outcome = this.#reach(from, options)
        if (outcome === 'silence') return
        if (outcome instanceof Error) settle(undefined, outcome)
        else settle(outcome)
      })
    })
  }

  #reach(from: string, address: Address): VirtualSide | Error | 'silence' {
    const host = this.#resolve(from, address.host)
    if (host === undefined) return linkError('ENOTFOUND', `no machine is named ${address.host}`)
    if (this.#partitions.has(pairKey(from, host))) return 'silence'
    const listener = this.#listeners.get(listenerKey(host, address.port))
    if (listener === undefined || this.#isRefused(host)) {
      return linkError('ECONNREFUSED', `${host}:${String(address.port)} refused`)
    }
    const link = new VirtualLink({
      clock: this.#options.clock,
      random: this.#options.random,
      settings: this.#settings,
      hosts: [from, host],
      port: address.port,
      note: (line) => this.#options.note?.(line),
      onClosed: (closed) => this.#links.delete(closed),
    })
    this.#links.add(link)
    listener.accept(link.server, { host: from, port: this.#nextPort++ })
    return link.client
  }

  #resolve(from: string, name: string): string | undefined {
    if (ownNames.has(name)) return from
    return this.#names.get(name) ?? (this.#hosts.has(name) ? name : undefined)
  }

  #isRefused(host: string): boolean {
    const left = this.#refused.get(host) ?? 0
    if (left > 0) this.#refused.set(host, left - 1)
    return left > 0
  }

  #after<T>(delayMs: number, make: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.#options.clock.schedule(delayMs, () => {
        resolve(make())
      })
    })
  }
}

function pairKey(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

function listenerKey(host: string, port: number): string {
  return `${host}:${String(port)}`
}
