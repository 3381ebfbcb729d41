import { beforeEach, describe, expect, it } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { DiskHealthMonitor } from '../../../shuffle-worker/storage/disk-health.ts'
import { diskLimits } from '../../../shuffle-worker/storage/disk-operation.ts'
import { DiskQueue } from '../../../shuffle-worker/storage/disk-queue.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

const probeIntervalMs = 10_000

let virtual: VirtualWorld
let monitor: DiskHealthMonitor
let queue: DiskQueue
let changes: string[]

beforeEach(async () => {
  virtual = new VirtualWorld()
  changes = []
  const { clock, disk } = virtual.main
  await virtual.drive(disk.makeDirectory('/data'))
  queue = new DiskQueue({
    clock,
    directory: '/data',
    limits: diskLimits.hdd,
    operationTimeoutMs: 30_000,
    observer: {
      measured: () => undefined,
      troubled: (error) => {
        monitor.troubled(error)
      },
      full: () => undefined,
    },
  })
  monitor = new DiskHealthMonitor({
    clock,
    disk,
    queue,
    directory: '/data',
    probePath: '/data/probe',
    probeIntervalMs,
    failedAfterMs: 60_000,
    onChange: (health) => changes.push(health),
  })
  monitor.start()
})

describe('the health of a disk', () => {
  it('stays healthy while probes succeed, and they leave nothing', async () => {
    await virtual.clock.advance(10 * probeIntervalMs)
    expect(monitor.health).toBe('healthy')
    expect(virtual.disk().filesBelow('/data')).toEqual([])
    expect(virtual.disk().openFileCount).toBe(0)
  })

  it('is suspect after trouble and healthy after a probe that syncs', async () => {
    monitor.troubled(new ShuffleError('DISK_FAILED', 'missed'))
    expect(monitor.health).toBe('suspect')
    const fault = virtual.disk().inject({
      operation: 'sync',
      fault: { kind: 'error', code: 'EIO' },
    })
    await virtual.clock.advance(2 * probeIntervalMs)
    expect(fault.hits).toBeGreaterThan(0)
    expect(monitor.health).toBe('suspect')
    fault.remove()
    await virtual.clock.advance(probeIntervalMs + 1000)
    expect(changes).toEqual(['suspect', 'healthy'])
  })

  it('has failed when no probe succeeds for a minute, told once, and stays so', async () => {
    virtual.disk().inject({ operation: 'open', fault: { kind: 'error', code: 'EIO' } })
    await virtual.clock.advance(59_000)
    expect(monitor.health).toBe('suspect')
    await virtual.clock.advance(2000)
    expect(changes).toEqual(['suspect', 'failed'])
    await expect(queue.run({ kind: 'read', run: () => Promise.resolve(1) })).rejects.toMatchObject({
      code: 'DISK_FAILED',
    })
    await virtual.clock.advance(60_000)
    expect(changes).toHaveLength(2)
    expect(virtual.clock.timerCount).toBe(0)
  })

  it('has at most one probe outstanding on a disk that hangs', async () => {
    virtual.disk().inject({ operation: 'open', fault: { kind: 'hang' } })
    const before = virtual.disk().operationCount
    await virtual.clock.advance(55_000)
    // One removal of what an earlier probe left, and one open, which hangs.
    expect(virtual.disk().operationCount - before).toBe(2)
    expect(monitor.health).toBe('suspect')
    await virtual.clock.advance(10_000)
    expect(monitor.health).toBe('failed')
  })

  it('stays healthy when the disk is full, which is not broken', async () => {
    virtual.disk().setCapacity('/data', 100)
    await virtual.clock.advance(120_000)
    expect(changes).toEqual([])
    expect(virtual.disk().filesBelow('/data')).toEqual([])
  })

  it('takes up again after a probe that came late', async () => {
    const fault = virtual.disk().inject({ operation: 'open', fault: { kind: 'hang' } })
    await virtual.clock.advance(45_000)
    expect(monitor.health).toBe('suspect')
    fault.remove()
    virtual.disk().releaseHung()
    await virtual.clock.advance(2 * probeIntervalMs)
    expect(monitor.health).toBe('healthy')
  })

  it('does not probe after it was stopped', async () => {
    monitor.stop()
    const before = virtual.disk().operationCount
    await virtual.clock.advance(5 * probeIntervalMs)
    expect(virtual.disk().operationCount).toBe(before)
  })
})
