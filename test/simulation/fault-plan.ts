// The faults of one seed: what kind, where, when and for how long. Kinds are a closed set, so that the
// coverage can say which were never reached.

import type { VirtualRandom } from '../support/virtual-random.ts'

export const faultKinds = [
  'link-cut',
  'link-cut-at-byte',
  'link-cut-at-message',
  'link-silent',
  'link-slow',
  'network-partition',
  'one-way-partition',
  'connect-refused',
  'address-changed',
  'disk-error',
  'disk-short-write',
  'disk-short-read',
  'disk-slow',
  'disk-hung',
  'disk-full',
  'disk-full-at-start',
  'disk-read-only',
  'disk-close-error',
  'disk-bit-flip',
  'worker-killed',
  'worker-killed-at-operation',
  'worker-killed-at-message',
  'worker-killed-twice',
  'worker-stopped',
  'worker-power-loss',
  'worker-paused',
  'worker-wiped',
  'worker-drained',
  'manager-killed',
  'manager-killed-at-message',
  'manager-killed-after-release',
  'manager-paused',
  'manager-and-worker-killed',
  'task-host-killed',
  'task-host-paused',
  'master-killed',
  'master-paused',
  'master-replaced',
  'process-killed-at-event',
  'process-killed-at-timer',
  'wall-clock-jump',
  'stranger',
] as const

export type FaultKind = (typeof faultKinds)[number]

export interface FaultPlan {
  readonly kind: FaultKind
  readonly atMs: number
  readonly durationMs: number
  /** Which worker, task host, job or directory: the index modulo their number. */
  readonly target: number
  readonly other: number
  /** A byte, a message or an operation, counted from the time on. */
  readonly after: number
  /** `after` is the point itself, not a draw. */
  readonly isExact?: boolean
}

/** Bytes and events are more than messages and operations. */
const afterExponents: Partial<Record<FaultKind, number>> = {
  'link-cut-at-byte': 15,
  'process-killed-at-event': 11,
}

/** How often a kind is drawn for each time that others are: these often find nothing to hit. */
const weights: Partial<Record<FaultKind, number>> = {
  'disk-error': 3,
  'disk-short-write': 3,
  'disk-short-read': 2,
  'disk-slow': 2,
  'disk-hung': 2,
  'disk-read-only': 2,
  'disk-close-error': 4,
  'worker-killed-at-operation': 2,
  'manager-killed-after-release': 2,
}
const drawn = faultKinds.flatMap((kind) => Array<FaultKind>(weights[kind] ?? 1).fill(kind))

/** Exponents of the shortest and the longest time, in milliseconds, that a fault lasts. */
function durationExponents(kind: FaultKind): readonly [min: number, max: number] {
  if (kind.includes('paused')) return [5, 16.2]
  // Long enough for the disk to be used in it.
  return kind.startsWith('disk-') ? [8, 15] : [5, 15]
}

/** In the time in which the jobs run, from the first start on; a few come later. */
export function drawFaults(random: VirtualRandom, spanMs: number): readonly FaultPlan[] {
  const count = random.chance(0.05) ? 0 : 2 + random.integer(7)
  const faults = Array.from({ length: count }, (): FaultPlan => {
    const kind = drawn[random.integer(drawn.length)] ?? 'link-cut'
    return {
      kind,
      atMs: random.between(0, spanMs * (random.chance(0.9) ? 1 : 4)),
      durationMs: Math.floor(2 ** random.between(...durationExponents(kind))),
      target: random.integer(1000),
      other: random.integer(1000),
      after: Math.floor(2 ** random.between(0, afterExponents[kind] ?? 8)),
    }
  })
  return faults.sort((a, b) => a.atMs - b.atMs)
}
