// A pod of the chart as processes of this machine: the container's command, environment, files and
// probes as they are rendered, with the pod's paths moved below a directory and the names of the
// cluster's DNS turned into this machine.

import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { ChildRun, sluiceMain, until } from '../cluster.ts'
import { at, namespace, podSpec } from './chart-tools.ts'
import type { Container, Manifest, PodSpec } from './chart-tools.ts'

export type ProbeName = 'startupProbe' | 'readinessProbe' | 'livenessProbe'

export class ChartPod {
  readonly #manifests: readonly Manifest[]
  readonly #pod: PodSpec
  readonly #container: Container
  readonly #name: string
  readonly #root: string
  #run: ChildRun | undefined

  /** `name` is the pod's; `directory` gets its file system. */
  constructor(
    manifests: readonly Manifest[],
    pod: { readonly manifest: Manifest; readonly name: string; readonly directory: string },
  ) {
    this.#manifests = manifests
    this.#pod = podSpec(pod.manifest)!
    this.#container = this.#pod.containers[0]!
    this.#name = pod.name
    this.#root = join(pod.directory, pod.name)
  }

  get gracePeriodMs(): number {
    return this.#pod.terminationGracePeriodSeconds * 1000
  }

  get stderr(): string {
    return this.#run?.stderr ?? ''
  }

  /** Makes the volumes and starts the main container's process. */
  start(): void {
    this.#mountVolumes()
    this.#run = new ChildRun(process.execPath, [sluiceMain, ...(this.#container.args ?? [])], {
      env: this.#environment(),
      cwd: this.#root,
    })
  }

  /** Runs the container's own command, in which `sluice` is what the image has under that name. */
  async runCommand(): Promise<{ readonly code: number | null; readonly output: string }> {
    this.#mountVolumes()
    const shim = join(this.#root, 'bin/sluice')
    mkdirSync(dirname(shim), { recursive: true })
    const script = `#!/bin/sh\nexec ${process.execPath} ${sluiceMain} "$@"\n`
    writeFileSync(shim, script, { mode: 0o755 })
    const [command = '', ...argv] = this.#container.command ?? []
    const run = new ChildRun(
      command,
      argv.map((text) => this.#moved(text)),
      {
        env: {
          ...this.#environment(),
          PATH: `${dirname(shim)}:${process.env['PATH'] ?? ''}`,
          TMPDIR: join(this.#root, 'tmp'),
        },
      },
    )
    const { code, stdout, stderr } = await run.finished
    return { code, output: `${stdout}${stderr}` }
  }

  /** The status that a probe's request has now; undefined while nobody answers. */
  async probe(name: ProbeName): Promise<number | undefined> {
    const { path, port } = at(this.#container, name, 'httpGet') as { path: string; port: string }
    try {
      return (await fetch(`http://127.0.0.1:${String(this.port(port))}${path}`)).status
    } catch {
      return undefined
    }
  }

  /** The number of a port by its name. */
  port(name: string): number {
    const ports = this.#container['ports'] as readonly { name: string; containerPort: number }[]
    return ports.find((port) => port.name === name)!.containerPort
  }

  async ready(): Promise<void> {
    await until(`${this.#name} is ready`, async () => {
      if (this.#run?.isRunning !== true) throw new Error(`${this.#name} ended: ${this.stderr}`)
      return (await this.probe('readinessProbe')) === 200
    })
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    const finished = await this.#run?.kill(signal)
    return finished?.code ?? null
  }

  #mountVolumes(): void {
    for (const { name, mountPath } of this.#container.volumeMounts) {
      const directory = join(this.#root, mountPath)
      mkdirSync(directory, { recursive: true })
      const volume = this.#pod.volumes.find((one) => one.name === name)
      for (const [file, text] of Object.entries(this.#contentOf(volume))) {
        writeFileSync(join(directory, file), this.#moved(text))
      }
    }
  }

  #contentOf(volume: unknown): Readonly<Record<string, string>> {
    const named = (kind: string, name: unknown) =>
      this.#manifests.find((one) => one.kind === kind && one.metadata.name === name)
    const config = named('ConfigMap', at(volume, 'configMap', 'name'))
    if (config !== undefined) return config['data'] as Readonly<Record<string, string>>
    const secret = named('Secret', at(volume, 'secret', 'secretName'))
    const items = (at(volume, 'secret', 'items') ?? []) as readonly { key: string; path: string }[]
    return Object.fromEntries(
      items.map(({ key, path }) => {
        const encoded = at(secret, 'data', key) as string
        return [path, Buffer.from(encoded, 'base64').toString()]
      }),
    )
  }

  #environment(): Record<string, string> {
    const environment: Record<string, string> = {}
    for (const { name, value } of this.#container.env) {
      const text = value ?? (name === 'POD_NAME' ? this.#name : '')
      environment[name] = this.#moved(text.replaceAll('$(POD_NAME)', this.#name))
    }
    return environment
  }

  /** Paths of mounts below the pod's directory, names of the cluster on this machine. */
  #moved(text: string): string {
    const names = new RegExp(`[\\w.-]+\\.${namespace}\\.svc\\.cluster\\.local`, 'g')
    const mounts = this.#container.volumeMounts.map(({ mountPath }) => mountPath).join('|')
    // Whole paths only, in one pass: /etc/sluice is not a part of /etc/sluice-token.
    const paths = new RegExp(`(?<![\\w.-])(${mounts})(?![\\w.-])`, 'g')
    return text.replace(names, '127.0.0.1').replace(paths, (path) => join(this.#root, path))
  }
}

/** Ports that nobody listens on, as many as asked for. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject)
          server.listen(0, '127.0.0.1', () => {
            resolve((server.address() as AddressInfo).port)
          })
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
