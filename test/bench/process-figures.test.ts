import { describe, expect, it } from 'vitest'
import {
  cpuSecondsOf,
  deviceCountersOf,
  ioBytesOf,
  peakResidentBytes,
  processCounters,
} from '../../bench/process-figures.ts'

describe('process figures', () => {
  it('processor time is found behind a name with spaces and parentheses', () => {
    const stat = `17 (a (b) c) S ${['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'].join(' ')} 250 50 0`
    expect(cpuSecondsOf(stat)).toBe(3)
  })

  it('bytes at the disk are told from bytes of calls', () => {
    const io = 'rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n'
    expect(ioBytesOf(io)).toEqual({ readBytes: 4096, writtenBytes: 8192 })
  })

  it('the line of the device is found by its numbers', () => {
    const diskstats =
      ' 254 0 vda 1 2 30 4 5 6 70 8\n 254 1 vda1 1 2 300 4 5 6 700 8\n 7 0 loop0 1 2 3 4 5 6 7 8\n'
    expect(deviceCountersOf(diskstats, { major: 254, minor: 1 })).toEqual({
      readBytes: 300 * 512,
      writtenBytes: 700 * 512,
    })
    expect(deviceCountersOf(diskstats, { major: 9, minor: 9 })).toEqual({
      readBytes: 0,
      writtenBytes: 0,
    })
  })

  it('reads a living process', () => {
    if (process.platform !== 'linux') {
      process.stdout.write('not Linux: figures of a living process were not read\n')
      return
    }
    expect(processCounters(process.pid).cpuSeconds).toBeGreaterThan(0)
    expect(peakResidentBytes(process.pid)).toBeGreaterThan(1024 * 1024)
  })
})
