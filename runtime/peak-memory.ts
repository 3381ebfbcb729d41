// The most memory that this process has had resident.

import { readFileSync } from 'node:fs'

/** From the kernel where it says (VmHWM); elsewhere the resource usage, in which a fork counts. */
export function peakMemoryBytes(readStatus: () => string = readOwnStatus): number {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(readStatus())?.[1]
  return (found === undefined ? process.resourceUsage().maxRSS : Number(found)) * 1024
}

function readOwnStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8')
  } catch {
    // Not Linux.
    return ''
  }
}
