// What a test plans to go wrong with the calls of a virtual disk.

import type { FileNode } from './virtual-file-tree.ts'

export type OperationKind =
  | 'open'
  | 'write'
  | 'read'
  | 'sync'
  | 'truncate'
  | 'sizeBytes'
  | 'close'
  | 'rename'
  | 'unlink'
  | 'makeDirectory'
  | 'list'
  | 'status'
  | 'syncDirectory'
  | 'space'
  | 'lock'

export interface Operation {
  /** From 1 on, over all processes. */
  readonly number: number
  readonly kind: OperationKind
  readonly path: string
  readonly byteCount?: number
  readonly position?: number
  readonly parts?: readonly Uint8Array[]
  readonly node?: FileNode
}

export type Fault =
  | {
      readonly kind: 'error'
      readonly code: string
      /** Of a close: half of the file, which had not reached the disk, is gone with it. */
      readonly losesContent?: boolean
    }
  /** A write does half of its bytes and then fails, with EIO unless said otherwise. */
  | { readonly kind: 'short'; readonly code?: string }
  /** A read gives half of the bytes and says so. */
  | { readonly kind: 'short-read' }
  /** No answer until {@link VirtualDisk.releaseHung}. */
  | { readonly kind: 'hang' }
  | { readonly kind: 'slow'; readonly delayMs: number }

export interface FaultRule {
  readonly fault: Fault
  /** Any call unless given. */
  readonly operation?: OperationKind | readonly OperationKind[]
  /** The beginning of the path, or a pattern of it. */
  readonly path?: string | RegExp
  /** Lets this many matching calls pass first. */
  readonly after?: number
  /** Strikes this often; for ever unless given. */
  readonly times?: number
}

export interface InjectedFault {
  /** How often it has struck. */
  readonly hits: number
  remove(): void
}

export class FaultPlan {
  readonly #rules = new Set<ActiveRule>()
  readonly #hung: (() => void)[] = []

  add(rule: FaultRule): InjectedFault {
    const active: ActiveRule = { rule, passed: 0, hits: 0 }
    this.#rules.add(active)
    return {
      get hits() {
        return active.hits
      },
      remove: () => {
        this.#rules.delete(active)
      },
    }
  }

  of(operation: Operation): Fault | undefined {
    for (const active of this.#rules) {
      if (!matches(active.rule, operation)) continue
      active.passed += 1
      if (active.passed <= (active.rule.after ?? 0)) continue
      if (active.hits >= (active.rule.times ?? Infinity)) continue
      active.hits += 1
      return active.rule.fault
    }
    return undefined
  }

  hold(goOn: () => void): void {
    this.#hung.push(goOn)
  }

  releaseHung(): void {
    for (const goOn of this.#hung.splice(0)) goOn()
  }
}

interface ActiveRule {
  readonly rule: FaultRule
  passed: number
  hits: number
}

function matches(rule: FaultRule, operation: Operation): boolean {
  const kinds = typeof rule.operation === 'string' ? [rule.operation] : rule.operation
  if (kinds !== undefined && !kinds.includes(operation.kind)) return false
  if (rule.path === undefined) return true
  return typeof rule.path === 'string'
    ? operation.path.startsWith(rule.path)
    : rule.path.test(operation.path)
}
