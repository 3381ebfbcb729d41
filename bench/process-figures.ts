// What the system counts of a process and of a disk, read from /proc. Linux only: the bench refuses
// to run elsewhere.

import { readFileSync, statSync, writeFileSync } from 'node:fs'

/** USER_HZ, which /proc/PID/stat counts in: 100 on every Linux. */
const ticksPerSecond = 100
/** Which /proc/diskstats counts in, whatever the disk's own sectors are. */
const sectorBytes = 512

export interface ProcessCounters {
  /** User and system time of all threads. */
  readonly cpuSeconds: number
  /** Bytes that the process made the disks read and write. */
  readonly readBytes: number
  readonly writtenBytes: number
}

export function processCounters(pid: number): ProcessCounters {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
  const io = readFileSync(`/proc/${String(pid)}/io`, 'utf8')
  return { cpuSeconds: cpuSecondsOf(stat), ...ioBytesOf(io) }
}

/** The name in parentheses may hold anything: the figures stand behind the last one. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

export function ioBytesOf(io: string): {
  readonly readBytes: number
  readonly writtenBytes: number
} {
  const figure = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1] ?? NaN)
  return { readBytes: figure('read_bytes'), writtenBytes: figure('write_bytes') }
}

/** Present resident size. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? NaN) * 1024
}

/** Largest resident size since the start or since {@link resetPeak}. */
export function peakResidentBytes(pid: number): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? NaN) * 1024
}

/** The peak counts anew from the present size. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${String(pid)}/clear_refs`, '5')
}

export interface DeviceCounters {
  readonly readBytes: number
  readonly writtenBytes: number
}

/** Of the disk under `directory`, whoever used it. */
export function deviceCounters(directory: string): DeviceCounters {
  const { dev } = statSync(directory)
  const [major, minor] = [Math.floor(dev / 256) & 0xfff, dev & 0xff]
  return deviceCountersOf(readFileSync('/proc/diskstats', 'utf8'), { major, minor })
}

/** Zeros for a file system without a disk of its own (tmpfs). */
export function deviceCountersOf(
  diskstats: string,
  device: { readonly major: number; readonly minor: number },
): DeviceCounters {
  for (const line of diskstats.split('\n')) {
    const fields = line.trim().split(/\s+/)
    if (Number(fields[0]) !== device.major || Number(fields[1]) !== device.minor) continue
    return {
      readBytes: Number(fields[5]) * sectorBytes,
      writtenBytes: Number(fields[9]) * sectorBytes,
    }
  }
  return { readBytes: 0, writtenBytes: 0 }
}
