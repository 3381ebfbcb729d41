import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger, type Logger } from '../../../client/common/log.ts'
import { servingFromTheStart, type ServiceRecord } from '../../../client/manager/schemas.ts'
import { layoutOf } from '../../../shuffle-worker/storage/directory-layout.ts'
import {
  decodeService,
  encodeService,
  KeptService,
  latestService,
  readService,
  writeService,
} from '../../../shuffle-worker/storage/directory-service.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'
import { newQueuedDisk } from './support/directory-bench.ts'

const layout = layoutOf('/data')
const record: ServiceRecord = { state: 'draining', reason: 'neue Platte für „b“\n', number: 3 }
let virtual: VirtualWorld

beforeEach(async () => {
  virtual = new VirtualWorld()
  await virtual.drive(virtual.main.disk.makeDirectory('/data'))
})

describe('what people want of a worker, in a data directory', () => {
  it('is nothing in a new one, and durable once written', async () => {
    const disk = newQueuedDisk(virtual.main)
    expect(await virtual.drive(readService(disk, layout, silentLogger))).toEqual(
      servingFromTheStart,
    )
    await virtual.drive(writeService(disk, layout, record))
    await virtual.drive(writeService(disk, layout, { ...record, number: 4 }))
    virtual.disk().crash('drop')
    const again = newQueuedDisk(virtual.start('main'))
    expect(await virtual.drive(readService(again, layout, silentLogger))).toEqual({
      ...record,
      number: 4,
    })
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/service'])
  })

  it('is not believed when any byte is damaged or missing, and the log says so', async () => {
    const bytes = Buffer.from(encodeService(record))
    for (let at = 0; at < bytes.byteLength; at += 1) {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      expect(decodeService(damaged)).toBeUndefined()
      expect(decodeService(bytes.subarray(0, at))).toBeUndefined()
    }
    expect(decodeService(bytes)).toEqual(record)
    const disk = newQueuedDisk(virtual.main)
    const file = await virtual.drive(virtual.main.disk.open(layout.service, 'create'))
    await virtual.drive(file.write([Buffer.from('no record')], 0))
    const warnings: string[] = []
    const logger: Logger = {
      ...silentLogger,
      warn: (_fields, message) => warnings.push(message),
    }
    expect(await virtual.drive(readService(disk, layout, logger))).toEqual(servingFromTheStart)
    expect(warnings).toHaveLength(1)
  })

  it('that no disk takes is told in the log, and holds on', async () => {
    const disk = newQueuedDisk(virtual.main)
    const errors: string[] = []
    const logger: Logger = { ...silentLogger, error: (_fields, message) => errors.push(message) }
    const usable = { disk, isOpen: true, health: 'healthy' } as const
    const missing = { ...usable, layout: layoutOf('/nowhere') }
    const directories = [missing, { ...usable, layout }]
    const kept = new KeptService(directories, logger)
    expect(await virtual.drive(kept.set(record))).toEqual(record)
    expect(errors).toEqual([])
    expect(await virtual.drive(readService(disk, layout, logger))).toEqual(record)
    directories.pop()
    const next: ServiceRecord = { ...record, number: 4 }
    expect(await virtual.drive(kept.set(next))).toEqual(next)
    expect(kept.wanted).toEqual(next)
    expect(errors).toHaveLength(1)
  })

  it('that no disk took is written when one takes writes again', async () => {
    const disk = newQueuedDisk(virtual.main)
    const kept = new KeptService([{ disk, layout, isOpen: true, health: 'healthy' }], silentLogger)
    const readOnly = { fault: { kind: 'error', code: 'EROFS' }, operation: 'open' } as const
    const fault = virtual.disk().inject({ path: '/data', ...readOnly })
    expect(await virtual.drive(kept.set(record))).toEqual(record)
    kept.writeAgain()
    await virtual.clock.settle()
    fault.remove()
    expect(virtual.disk().filesBelow('/data')).toEqual([])
    kept.writeAgain()
    await virtual.clock.advance(100)
    expect(await virtual.drive(readService(disk, layout, silentLogger))).toEqual(record)
    virtual.disk().inject({ path: '/data', ...readOnly })
    // What is there is not written a second time.
    kept.writeAgain()
    await virtual.clock.advance(100)
    expect(await virtual.drive(kept.set(record))).toEqual(record)
  })

  it('is written one after the other, and the last that is wanted meanwhile stays', async () => {
    const disk = newQueuedDisk(virtual.main)
    let writes = 0
    const directory = {
      disk,
      layout,
      isOpen: true,
      get health() {
        writes += 1
        return 'healthy' as const
      },
    }
    const kept = new KeptService([directory], silentLogger)
    const told: number[] = []
    const set = async (number: number) => {
      told.push((await kept.set({ ...record, number })).number)
      // What is told is on the disk, or a later one is.
      const held = await readService(newQueuedDisk(virtual.main), layout, silentLogger)
      expect(held.number).toBeGreaterThanOrEqual(number)
    }
    const all = Promise.all([set(4), set(5), set(7), set(6)])
    expect(kept.wanted.number).toBe(7)
    await virtual.drive(all)
    expect(told).toEqual([4, 7, 7, 7])
    expect(writes).toBe(2)
    virtual.disk().crash('drop')
    const again = newQueuedDisk(virtual.start('main'))
    expect(await virtual.drive(readService(again, layout, silentLogger))).toEqual({
      ...record,
      number: 7,
    })
    expect(virtual.disk().filesBelow('/data')).toEqual(['/data/service'])
  })

  it('is the latest of what several directories say', () => {
    expect(latestService([])).toEqual(servingFromTheStart)
    const older: ServiceRecord = { state: 'excluded', reason: '', number: 2 }
    expect(latestService([older, record, servingFromTheStart])).toBe(record)
  })
})
