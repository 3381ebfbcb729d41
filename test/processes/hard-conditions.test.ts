import { execFileSync } from 'node:child_process'
import { mkdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { ShuffleDescriptor } from '../../client/index.ts'
import { scrape, TestCluster, until, type ClusterProcess } from '../support/cluster.ts'
import { EmbeddedClient } from '../support/embedded-client.ts'
import { CuttingProxy } from './cutting-proxy.ts'

const isRoot = process.getuid?.() === 0
const subpartitions = 4
const whole = { first: 0, last: subpartitions - 1 }

let cluster: TestCluster | undefined
const undo: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each()
  await cluster?.stop()
  cluster = undefined
})

function recordsOf(partition: number, count: number): string[][] {
  return Array.from({ length: subpartitions }, (_, subpartition) =>
    Array.from({ length: count }, (__, index) =>
      `${String(partition)}/${String(subpartition)}/${String(index)} `.repeat(20),
    ),
  )
}

async function startCluster(options: Parameters<typeof TestCluster.start>[0]) {
  cluster = await TestCluster.start(options)
  return cluster
}

async function writeSome(client: EmbeddedClient, partitions: number, count: number) {
  const descriptors: ShuffleDescriptor[] = []
  const expected: string[] = []
  for (let index = 0; index < partitions; index += 1) {
    const descriptor = await client.allocate(index, subpartitions)
    const records = recordsOf(index, count)
    await client.write(descriptor, records)
    descriptors.push(descriptor)
    expected.push(...records.flat())
  }
  return { descriptors, expected: expected.sort() }
}

function through(proxy: CuttingProxy, descriptor: ShuffleDescriptor): ShuffleDescriptor {
  return {
    ...descriptor,
    holders: descriptor.holders.map((holder) => ({ ...holder, port: proxy.port })),
  }
}

async function figure(of: ClusterProcess, name: string): Promise<number> {
  return (await scrape(of.httpUrl)).get(name) ?? NaN
}

async function expectAtRest(worker: ClusterProcess): Promise<void> {
  await until(
    'no connection is left',
    async () => (await figure(worker, 'sluice_worker_connections')) === 0,
  )
}

describe('a process that is stopped and goes on', () => {
  it.each(['worker', 'manager'] as const)('%s: nothing is lost', async (which) => {
    const on = await startCluster({ workers: 1 })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { descriptors, expected } = await writeSome(client, 3, 300)
    const stopped = which === 'worker' ? on.worker(0) : on.manager
    stopped.signal('SIGSTOP')
    const reading = client.read(descriptors, whole)
    setTimeout(() => {
      stopped.signal('SIGCONT')
    }, 3_000)
    expect((await reading).sort()).toEqual(expected)
    const more = await client.allocate(3, subpartitions)
    await client.write(more, recordsOf(3, 10))
    expect(await client.read([more], whole)).toHaveLength(40)
  })
})

/** One worker on a file system of 4 MiB; undefined, and said, where none can be mounted. */
async function startOnSmallFileSystem() {
  if (!isRoot) {
    process.stdout.write('NOT RUN: a full file system; mounting a small one needs root\n')
    return undefined
  }
  const on = new TestCluster({
    workers: 1,
    managerOptions: ['--min-free-space=0'],
    workerOptions: ['--min-reserved-space=0'],
  })
  cluster = on
  const directory = join(on.directory, 'worker-0')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', directory])
  undo.push(async () => {
    await on.worker(0).kill()
    execFileSync('umount', [directory])
  })
  await on.manager.start()
  on.worker(0).addArguments(['--manager', on.managerUrl])
  await on.worker(0).start()
  return { on, directory }
}

describe('a full file system', () => {
  it('fails the write by name, keeps what is committed, and takes writes again when there is room', async () => {
    const { on } = (await startOnSmallFileSystem()) ?? {}
    if (on === undefined) return
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { descriptors, expected } = await writeSome(client, 1, 500)
    const large = await client.allocate(1, subpartitions)
    const noise = Array.from({ length: subpartitions }, () => [incompressible(2_000_000)])
    await expect(client.write(large, noise)).rejects.toMatchObject({ code: 'NO_SPACE' })
    client.master.releasePartitionExternally(large)
    expect((await client.read(descriptors, whole)).sort()).toEqual(expected)
    const again = await until('the disk takes partitions again', async () => {
      const next = await client.allocate(2, subpartitions).catch(() => undefined)
      if (next === undefined) return undefined
      await client.write(next, recordsOf(2, 10))
      return next
    })
    expect(await client.read([again], whole)).toHaveLength(40)
  })

  it('loses nothing when a worker starts on it that others have filled', async () => {
    const { on, directory } = (await startOnSmallFileSystem()) ?? {}
    if (on === undefined || directory === undefined) return
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { descriptors, expected } = await writeSome(client, 3, 100)
    await on.worker(0).kill()
    const others = join(directory, 'of-others')
    expect(() => {
      writeFileSync(others, Buffer.alloc(5_000_000))
    }).toThrow(/ENOSPC/)
    await on.worker(0).start()
    expect((await client.read(descriptors, whole)).sort()).toEqual(expected)
    unlinkSync(others)
    const more = await client.allocate(3, subpartitions)
    await client.write(more, recordsOf(3, 10))
    await on.worker(0).kill()
    await on.worker(0).start()
    expect(await client.read([more], whole)).toHaveLength(40)
  })
})

describe('a connection that is cut or slow', () => {
  it('at any byte of a read: all comes, once', async () => {
    const on = await startCluster({ workers: 1 })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { descriptors, expected } = await writeSome(client, 2, 60)
    const { dataPort = 0 } = on.worker(0).ready ?? {}
    const total = { up: 0, down: 0 }
    let cutCount = 0
    {
      await using proxy = await CuttingProxy.before(dataPort)
      await readThrough(proxy, on, descriptors)
      Object.assign(total, proxy.passed)
    }
    for (const direction of ['up', 'down'] as const) {
      for (let point = 0; point < 40; point += 1) {
        await using proxy = await CuttingProxy.before(dataPort)
        const bytes = Math.floor((point * total[direction]) / 40)
        proxy.plan = { cutAfter: { direction, bytes: bytes + 1 }, times: 1 }
        const read = await readThrough(proxy, on, descriptors)
        // How much a reader says hangs on how its grants fall together.
        const cuts = proxy.passed[direction] > bytes ? 1 : 0
        cutCount += cuts
        expect([direction, bytes, proxy.cuts, read]).toEqual([direction, bytes, cuts, expected])
      }
    }
    expect(cutCount).toBeGreaterThan(60)
    await expectAtRest(on.worker(0))
  })

  it('at any byte of a write: the attempt fails by name, or what is read is whole', async () => {
    const on = await startCluster({ workers: 1 })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { dataPort = 0 } = on.worker(0).ready ?? {}
    const records = recordsOf(7, 60)
    let failedCount = 0
    for (let point = 0; point < 40; point += 1) {
      const descriptor = await client.allocate(point, subpartitions)
      await using proxy = await CuttingProxy.before(dataPort)
      const direction = point % 2 === 0 ? 'up' : 'down'
      const bytes = direction === 'up' ? 1 + point * 120 : 1 + point * 8
      proxy.plan = { cutAfter: { direction, bytes }, times: 1 }
      await using other = await EmbeddedClient.start({
        managerUrl: on.managerUrl,
        jobId: `other-${String(point)}`,
      })
      try {
        await other.write(through(proxy, descriptor), records)
        expect((await client.read([descriptor], whole)).sort()).toEqual(records.flat().sort())
      } catch (error) {
        failedCount += 1
        expect(['WRITE_INTERRUPTED', 'WORKER_UNREACHABLE', 'WRITER_CONFLICT']).toContain(
          (error as { code?: string }).code,
        )
      }
      client.master.releasePartitionExternally(descriptor)
    }
    expect(failedCount).toBeGreaterThan(5)
    await expectAtRest(on.worker(0))
  })

  it('with every piece late: all comes', async () => {
    const on = await startCluster({ workers: 1 })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const { descriptors, expected } = await writeSome(client, 2, 200)
    await using proxy = await CuttingProxy.before(on.worker(0).ready?.dataPort ?? 0)
    proxy.plan = { delayMs: 80 }
    expect(await readThrough(proxy, on, descriptors)).toEqual(expected)
  })
})

describe('very many connections', () => {
  it('thousands that say nothing cost the others nothing, and are closed', async () => {
    const on = await startCluster({ workers: 1, workerOptions: ['--handshake-timeout=3s'] })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    await openMany(on.worker(0), 3_000)
    // The system may hold some back that it has no room for in its queue.
    await until('they are accepted', async () => {
      return (await figure(on.worker(0), 'sluice_worker_connections')) > 1_000
    })
    const { descriptors, expected } = await writeSome(client, 2, 100)
    expect((await client.read(descriptors, whole)).sort()).toEqual(expected)
    await until('the silent ones are closed', async () => {
      return (await figure(on.worker(0), 'sluice_worker_connections')) <= 1
    })
  })

  it('hundreds that speak a byte at a time cost the others nothing', async () => {
    const on = await startCluster({ workers: 1, workerOptions: ['--handshake-timeout=4s'] })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const sockets = await openMany(on.worker(0), 400)
    const drip = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write('\0')
    }, 300)
    undo.push(() => {
      clearInterval(drip)
    })
    const { descriptors, expected } = await writeSome(client, 2, 100)
    expect((await client.read(descriptors, whole)).sort()).toEqual(expected)
    await until('the slow ones are closed', () => sockets.every(({ destroyed }) => destroyed))
  })

  it('beyond the limit they are refused, and those within it go on', async () => {
    const on = await startCluster({
      workers: 1,
      workerOptions: ['--connections-max=50', '--handshake-timeout=20s'],
    })
    await using client = await EmbeddedClient.start({ managerUrl: on.managerUrl })
    const first = await writeSome(client, 1, 10)
    const sockets = await openMany(on.worker(0), 200)
    const isClosed = () => sockets.filter(({ destroyed }) => destroyed).length
    // One of the fifty is the client's.
    await until('the rest is refused', () => isClosed() === 151)
    expect((await client.read(first.descriptors, whole)).sort()).toEqual(first.expected)
    for (const socket of sockets) socket.destroy()
  })
})

let readers = 0

/** By a process of its own, so that nothing of an earlier connection is left. */
async function readThrough(
  proxy: CuttingProxy,
  on: TestCluster,
  descriptors: readonly ShuffleDescriptor[],
): Promise<string[]> {
  await using reader = await EmbeddedClient.start({
    managerUrl: on.managerUrl,
    jobId: `reader-${String(++readers)}`,
  })
  const there = descriptors.map((descriptor) => through(proxy, descriptor))
  return (await reader.read(there, whole)).sort()
}

async function openMany(worker: ClusterProcess, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(worker.ready?.dataPort ?? 0, '127.0.0.1')
    socket.on('error', () => socket.destroy())
    // A peer that ends is read to its end only when somebody reads.
    socket.resume()
    return socket
  })
  undo.push(() => {
    for (const socket of sockets) socket.destroy()
  })
  await until('they are open', () => sockets.every(({ connecting }) => !connecting))
  return sockets
}

function incompressible(length: number): string {
  let state = 1
  const letters = Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return String.fromCharCode(33 + ((state >>> 16) % 90))
  })
  return letters.join('')
}
