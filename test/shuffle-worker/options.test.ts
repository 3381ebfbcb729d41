import { describe, expect, it } from 'vitest'
import { optionValues } from '../../client/common/options.ts'
import { parseDataDirectories, workerOptions } from '../../shuffle-worker/options.ts'

const dataDirectories = ['/data']

describe('worker options', () => {
  it('have defaults that fit together', () => {
    const values = optionValues(workerOptions, { dataDirectories })
    expect(values).toMatchObject({ dataPort: 9710, httpPort: 9711, bufferSizeBytes: 32 * 1024 })
  })

  it('refuse a set that does not fit together, naming what is wrong', () => {
    for (const [given, text] of [
      [{ bufferSizeBytes: 5000 }, /power of two/],
      [{ memoryBytes: 8 * 1024 * 1024, bufferSizeBytes: 256 * 1024 }, /128 buffers/],
      [{ diskFailedAfterMs: 1000, diskProbeIntervalMs: 900, diskTimeoutMs: 100 }, /disk-probe/],
      [{ diskFailedAfterMs: 1000, diskProbeIntervalMs: 100, diskTimeoutMs: 2000 }, /disk-timeout/],
    ] as const) {
      expect(() => optionValues(workerOptions, { dataDirectories, ...given })).toThrow(text)
    }
  })
})

describe('parseDataDirectories', () => {
  it('reads the kind of each directory and takes relative ones from the working directory', () => {
    expect(parseDataDirectories(['[HDD]/one', '[ssd]two', '/three'], '/home')).toEqual([
      { path: '/one', kind: 'hdd' },
      { path: '/home/two', kind: 'ssd' },
      { path: '/three', kind: 'ssd' },
    ])
  })

  it('reads how a directory does its IO, where it is said', () => {
    const texts = ['[SSD:BUFFERED]/one', '[hdd:direct]/two', '[SSD]/three']
    expect(parseDataDirectories(texts, '/')).toEqual([
      { path: '/one', kind: 'ssd', isDirect: false },
      { path: '/two', kind: 'hdd', isDirect: true },
      { path: '/three', kind: 'ssd' },
    ])
    expect(() => parseDataDirectories(['[SSD:FAST]/one'], '/')).toThrow(/\[SSD:DIRECT\]/)
  })

  it('refuses an unknown kind and the same directory twice', () => {
    expect(() => parseDataDirectories(['[NVM]/one'], '/')).toThrow(/\[SSD\] or \[HDD\]/)
    expect(() => parseDataDirectories(['/one', '[HDD]/one/'], '/')).toThrow(/twice/)
  })
})
