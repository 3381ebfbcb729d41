import { describe, expect, it } from 'vitest'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import {
  gatheredWriteBytes,
  isDirectDefault,
} from '../../../shuffle-worker/storage/directory-io.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const mebibyte = 1024 * 1024

function ledger(totalBytes: number): MemoryLedger {
  const { clock } = new VirtualWorld().main
  return new MemoryLedger({ clock, totalBytes, bufferSizeBytes: 32 * 1024 })
}

describe('the IO of a directory', () => {
  it('is direct on disks without heads, unless told otherwise', () => {
    expect(isDirectDefault('ssd')).toBe(true)
    expect(isDirectDefault('hdd')).toBe(false)
  })

  it('gathers a mebibyte and what comes over it, less from a small pool', () => {
    expect(gatheredWriteBytes(ledger(256 * mebibyte))).toBe(mebibyte + 64 * 1024)
    expect(gatheredWriteBytes(ledger(64 * mebibyte))).toBe(768 * 1024)
    expect(gatheredWriteBytes(ledger(8 * mebibyte))).toBe(128 * 1024)
  })
})
