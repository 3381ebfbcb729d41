import { describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import {
  diskError,
  diskLimits,
  diskOperationKinds,
  diskOperationsInFlightMax,
  isDiskBroken,
  laneOf,
  systemCodeOf,
} from '../../../shuffle-worker/storage/disk-operation.ts'

const what = { kind: 'write', directory: '/data' } as const
const system = (code: string) => Object.assign(new Error(code), { code })

describe('disk operations', () => {
  it('have each a lane', () => {
    const lanes = new Set(diskOperationKinds.map(laneOf))
    expect([...lanes].sort()).toEqual(['control', 'read', 'write'])
  })

  it('need threads for the limits of all disks and a probe each', () => {
    expect(diskOperationsInFlightMax([])).toBe(0)
    expect(diskOperationsInFlightMax(['ssd', 'hdd'])).toBe(
      diskLimits.ssd.total + diskLimits.hdd.total + 2,
    )
  })

  it('fail as NO_SPACE when the disk is full and as DISK_FAILED otherwise', () => {
    expect(diskError(system('ENOSPC'), what).code).toBe('NO_SPACE')
    expect(diskError(system('EDQUOT'), what).code).toBe('NO_SPACE')
    const failed = diskError(system('EIO'), what)
    expect(failed).toMatchObject({
      code: 'DISK_FAILED',
      fields: { operation: 'write', directory: '/data', systemCode: 'EIO' },
    })
    expect(systemCodeOf(failed)).toBe('EIO')
    expect(isDiskBroken(failed)).toBe(true)
    expect(isDiskBroken(diskError(system('ENOENT'), what))).toBe(false)
    expect(systemCodeOf(undefined)).toBeUndefined()
  })

  it('pass errors on that have a code of ours already', () => {
    const error = new ShuffleError('DATA_CORRUPT', 'x')
    expect(diskError(error, what)).toBe(error)
  })
})
