// The tools of the chart tests, where test/helm/install-tools.sh puts them, and what they render.

import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { projectRoot } from '../source-tree.ts'

const execute = promisify(execFile)

export const chartFolder = join(projectRoot, 'helm')
export const namespace = 'shuffle-space'
/** The newest Kubernetes whose schemas are at hand: helm itself knows none. */
const kubernetesVersion = '1.37.0'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // What is in it differs by kind; a test reads what it is about.
  readonly [key: string]: unknown
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A tool by the beginning of its name, such as `helm-3`. */
export function toolPath(beginning: string): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const folder = process.env['SLUICE_TOOLS'] ?? join(cache, 'sluice', 'tools')
  const found = readdirSync(folder).find((name) => name.startsWith(beginning))
  if (found === undefined)
    throw new Error(`${beginning} is missing: npm run pretest:chart makes it`)
  return join(folder, found)
}

export const helms = { 'helm 3': 'helm-3', 'helm 4': 'helm-4' } as const

export async function run(
  file: string,
  argv: readonly string[],
  options: { readonly input?: string; readonly cwd?: string } = {},
): Promise<Outcome> {
  const running = execute(file, argv, {
    maxBuffer: 64 * 1024 * 1024,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  if (options.input !== undefined) running.child.stdin?.end(options.input)
  try {
    return { code: 0, ...(await running) }
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
    if (typeof code !== 'number') throw error
    return { code, stdout: stdout ?? '', stderr: stderr ?? '' }
  }
}

export interface RenderOptions {
  readonly helm?: string
  readonly release?: string
  /** Its folder; the project's own unless given. */
  readonly chart?: string
  /** Names of files in test/helm/values, without `.yaml`. */
  readonly files?: readonly string[]
  /** Values by their path, as for `--set-json`. */
  readonly set?: Readonly<Record<string, unknown>>
}

/** The text that helm renders, or what it refuses. */
export async function helmTemplate(options: RenderOptions = {}): Promise<Outcome> {
  const {
    helm = 'helm-3',
    release = 'rel',
    files = ['defaults'],
    set = {},
    chart = chartFolder,
  } = options
  const values = files.flatMap((name) => [
    '--values',
    join(projectRoot, 'test/helm/values', `${name}.yaml`),
  ])
  const more = Object.entries(set).flatMap(([path, value]) => [
    '--set-json',
    `${path}=${JSON.stringify(value)}`,
  ])
  const target = ['--namespace', namespace, '--kube-version', kubernetesVersion]
  return await run(toolPath(helm), ['template', release, chart, ...target, ...values, ...more])
}

export async function render(options: RenderOptions = {}): Promise<Manifest[]> {
  const { code, stdout, stderr } = await helmTemplate(options)
  if (code !== 0) throw new Error(stderr)
  return parse(stdout)
}

export function parse(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document): unknown => {
      if (document.errors.length > 0) throw document.errors[0] as Error
      return document.toJS() as unknown
    })
    .filter((value): value is Manifest => value !== null)
}

export function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name} is rendered`)
  return found
}

/** What is at a path of keys and indexes. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (inner as Readonly<Record<string | number, unknown>> | undefined)?.[key],
    value,
  )
}

export interface PodSpec {
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly [kind: string]: unknown }[]
  readonly terminationGracePeriodSeconds: number
  readonly [key: string]: unknown
}

export interface Container {
  readonly name: string
  readonly args?: readonly string[]
  readonly command?: readonly string[]
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly resources: { readonly limits: Readonly<Record<string, string>> }
  readonly [key: string]: unknown
}

/** The pods that a manifest makes, if it makes any. */
export function podSpec(manifest: Manifest): PodSpec | undefined {
  if (manifest.kind === 'Pod') return manifest['spec'] as PodSpec
  return at(manifest, 'spec', 'template', 'spec') as PodSpec | undefined
}
