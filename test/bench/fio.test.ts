import { describe, expect, it } from 'vitest'
import { argumentsOf, bandwidthOf } from '../../bench/fio.ts'

const shape = {
  directory: '/d',
  fileCount: 2,
  requestBytes: 4096,
  depth: 8,
  totalBytes: 20_000,
  isDirect: true,
}

describe('fio', () => {
  it('gets the shape of the reference', () => {
    const argv = argumentsOf('read', shape)
    expect(argv).toContain('--directory=/d')
    expect(argv).toContain('--filename_format=file-$filenum')
    expect(argv).toContain('--nrfiles=2')
    expect(argv).toContain('--size=16384')
    expect(argv).toContain('--bs=4096')
    expect(argv).toContain('--iodepth=8')
    expect(argv).toContain('--direct=1')
    expect(argv).toContain('--rw=read')
    expect(argumentsOf('append', { ...shape, isDirect: false })).toContain('--direct=0')
  })

  it('answers the rate of its kind, past warnings', () => {
    const json = JSON.stringify({
      jobs: [{ read: { bw_bytes: 3_000_000 }, write: { bw_bytes: 5_000_000 } }],
    })
    expect(bandwidthOf(`note: something\n${json}`, 'read')).toBe(3)
    expect(bandwidthOf(json, 'append')).toBe(5)
  })
})
