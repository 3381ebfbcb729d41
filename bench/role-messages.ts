// What the bench asks its own processes to do, one call at a time.

import type { ChecksumTask } from './checksum-cost.ts'
import type { DiskResult, DiskShape } from './disk-reference.ts'
import type { ClusterPlace, ReadTask, TaskResult, WriteTask } from './load-tasks.ts'
import type { LifeCycleResult, LifeCycleTask } from './life-cycles.ts'

export interface Roles {
  readonly open: (place: ClusterPlace) => undefined
  readonly write: (task: WriteTask) => TaskResult
  readonly read: (task: ReadTask) => TaskResult
  readonly lifeCycles: (task: LifeCycleTask) => LifeCycleResult
  readonly append: (shape: DiskShape) => DiskResult
  readonly readBack: (shape: DiskShape & { order: 'sequential' | 'random' }) => DiskResult
  /** CPU-seconds per GB. */
  readonly checksum: (task: ChecksumTask) => number
  readonly openSink: (none: undefined) => number
  readonly received: (bytes: number) => undefined
  readonly pump: (load: { port: number; connectionCount: number; totalBytes: number }) => number
  /** Collects garbage, for a figure of what is held. */
  readonly rest: (none: undefined) => undefined
}

export type RoleName = keyof Roles
export type RoleInput<N extends RoleName> = Parameters<Roles[N]>[0]
export type RoleOutput<N extends RoleName> = ReturnType<Roles[N]>

export interface RoleCall {
  readonly id: number
  readonly name: RoleName
  readonly input: unknown
}

export type RoleAnswer =
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly error: string }
