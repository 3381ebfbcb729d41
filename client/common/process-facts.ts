// What a process says of itself to people: its Node, its threads, its limits, its memory.

import { arch, platform, release } from 'node:os'

export type ProcessFacts = Readonly<Record<string, string | number>>

/** `limitsText` is what /proc/self/limits says; empty where there is none. */
export function processFacts(limitsText: string): ProcessFacts {
  const [, files] = /^Max open files\s+(\d+|unlimited)/m.exec(limitsText) ?? []
  const { heapUsed, rss, external } = process.memoryUsage()
  return {
    node: process.version,
    system: `${platform()} ${release()} ${arch()}`,
    pid: process.pid,
    upSeconds: Math.round(process.uptime()),
    threadPool: Number(process.env['UV_THREADPOOL_SIZE'] ?? 4),
    openFilesMax: files ?? 'unknown',
    residentBytes: rss,
    heapUsedBytes: heapUsed,
    externalBytes: external,
  }
}
