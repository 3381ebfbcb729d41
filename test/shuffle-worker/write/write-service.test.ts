import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../client/common/log.ts'
import { WaiterRegister } from '../../../client/common/waiters.ts'
import type { MessageFields } from '../../../client/protocol/messages.ts'
import { MemoryLedger } from '../../../shuffle-worker/memory/memory-ledger.ts'
import type { StorageDirectoryView } from '../../../shuffle-worker/storage/storage-types.ts'
import { WriteService } from '../../../shuffle-worker/write/write-service.ts'
import type { WritingOutput } from '../../../shuffle-worker/write/writing-view.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { fakeDirectory, FakeWriter, key } from './support/fake-writer.ts'

function make(directory: StorageDirectoryView = fakeDirectory('ssd')) {
  const clock = new VirtualClock()
  const ledger = new MemoryLedger({ clock, totalBytes: 16 * 1024 * 1024, bufferSizeBytes: 4096 })
  const service = new WriteService({
    clock,
    waiters: new WaiterRegister({ clock }),
    logger: silentLogger,
    store: {
      directories: [directory],
      openWrite: () => Promise.resolve(new FakeWriter(clock, directory)),
    },
    ledger,
    options: {
      bufferSizeBytes: 4096,
      openWritesMax: 2,
      openTimeoutMs: 1000,
      regionTimeoutMs: 60_000,
      commitTimeoutMs: 60_000,
    },
    onTimes: () => undefined,
  })
  return { clock, ledger, service }
}

const output: WritingOutput = {
  sendOpened: () => undefined,
  sendCredit: () => undefined,
  sendCommitted: () => undefined,
  sendError: () => undefined,
}

function openWrite(more: Partial<MessageFields<'OpenWrite'>> = {}): MessageFields<'OpenWrite'> {
  return {
    key,
    allocation: { managerEpoch: 1, jobEpoch: 1, sequence: 1 },
    kind: 'map',
    subpartitionCount: 4,
    firstSubpartition: 0,
    lastSubpartition: 3,
    bufferSizeBytes: 4096,
    codec: 'none',
    expectedBytes: undefined,
    ...more,
  }
}

const ignore = () => undefined

describe('write service', () => {
  it('refuses what passes a limit, naming the option', () => {
    const { service } = make()
    const open = (more: Partial<MessageFields<'OpenWrite'>>) => () =>
      service.open(openWrite(more), output, ignore)
    expect(open({ bufferSizeBytes: 8192 })).toThrow(/buffer-size/)
    expect(open({ subpartitionCount: 0 })).toThrow(/1 to 131072 subpartitions/)
    expect(open({ lastSubpartition: 2 })).toThrow(/all subpartitions/)
    open({})()
    open({})()
    expect(open({})).toThrow(/open-writes-max/)
    expect(service.openWrites).toBe(2)
    service.close()
    expect(service.openWrites).toBe(0)
  })

  it('takes no new writes while it drains, and tells when the open ones have ended', async () => {
    const { service, clock } = make()
    const view = service.open(openWrite(), output, ignore)
    service.startDraining('it is stopping')
    expect(() => service.open(openWrite(), output, ignore)).toThrow(/stopping/)
    let isIdle = false
    void service.idle().then(() => (isIdle = true))
    await clock.settle()
    expect(isIdle).toBe(false)
    view.close()
    await clock.settle()
    expect(isIdle).toBe(true)
    await service.idle()
    service.close()
  })

  it('tells each open write that it is interrupted when it closes, and keeps no timer', async () => {
    const { service, clock } = make()
    const codes: (string | undefined)[] = []
    service.open(openWrite(), output, (error) => codes.push(error?.code))
    service.close()
    await clock.settle()
    expect(codes).toEqual(['WRITE_INTERRUPTED'])
    expect(clock.timerCount).toBe(0)
  })

  it('gives a region on a disk with heads a larger minimum, in turns with others', async () => {
    for (const [kind, least] of [
      ['ssd', 8],
      ['hdd', 500],
    ] as const) {
      const directory = fakeDirectory(kind)
      const { service, clock, ledger } = make(directory)
      const view = service.open(openWrite(), output, ignore)
      view.regionStart({ regionIndex: 0, isBroadcast: false, boundBytes: 2 ** 30 })
      await clock.runUntil(() => service.creditOutstanding > 0)
      expect(service.heldBuffers).toBeGreaterThanOrEqual(least)
      expect(service.turnsOf(directory) !== undefined).toBe(kind === 'hdd')
      expect(ledger.usedBytes('write')).toBe(service.heldBuffers * 4096)
      view.close()
      expect(ledger.usedBytes('write')).toBe(0)
      expect(service.stateSums().client).toBeGreaterThanOrEqual(0)
      service.close()
    }
  })
})
