// Counts what libraries have queued with setImmediate and what has not run yet. A virtual clock must not
// let time leap while there is any: the library is in the middle of something that takes no time.

import { promisify } from 'node:util'

const pending = new Set<NodeJS.Immediate>()
const { setImmediate: set, clearImmediate: clear } = globalThis

export const libraryImmediates = {
  /** Queued by code that uses the global function; a clock's own turns are not among them. */
  get count(): number {
    return pending.size
  },
}

function countedSet<A extends unknown[]>(
  callback: (...args: A) => void,
  ...args: A
): NodeJS.Immediate {
  const immediate = set(() => {
    pending.delete(immediate)
    callback(...args)
  })
  pending.add(immediate)
  return immediate
}

function countedClear(immediate: NodeJS.Immediate | undefined): void {
  if (immediate !== undefined) pending.delete(immediate)
  clear(immediate)
}

globalThis.setImmediate = Object.assign(countedSet, {
  [promisify.custom]: promisify(set),
}) as unknown as typeof setImmediate
globalThis.clearImmediate = countedClear
