import { expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { HttpTransport } from '../../../client/manager/http-transport.ts'
import { HttpPeer } from '../../support/http-peer.ts'
import { VirtualWorld } from '../../support/virtual-world.ts'

async function ready() {
  const world = new VirtualWorld({ seed: 5 })
  const peer = await HttpPeer.start(world, 'server', 80)
  const { clock, network } = world.start('client')
  const transport = new HttpTransport({ clock, network, url: 'http://server:80' })
  const get = (timeoutMs: number, signal?: AbortSignal) =>
    transport.request({
      method: 'GET',
      url: '/x',
      headers: { 'x-one': '1' },
      timeoutMs,
      ...(signal === undefined ? {} : { signal }),
    })
  return { world, peer, transport, get }
}

test('an address that is not one of plain HTTP is refused: no secret goes out in the clear instead', () => {
  const { clock, network } = new VirtualWorld({ seed: 1 }).start('client')
  for (const url of ['https://manager:9700', 'http://manager:99999', 'manager:9700', '']) {
    expect(() => new HttpTransport({ clock, network, url })).toThrow(/like http:..host:9700/)
  }
})

test('an answer comes with status, headers and body', async () => {
  const { world, peer, transport } = await ready()
  peer.answer = () => ({ status: 202, headers: { 'x-two': '2' }, body: { three: 3 } })
  const answer = await world.drive(
    transport.request({ method: 'POST', url: '/p?q=1', headers: {}, body: '{}', timeoutMs: 1000 }),
  )
  expect(answer).toMatchObject({ status: 202, body: '{"three":3}' })
  expect(answer.headers['x-two']).toBe('2')
  expect(peer.requests).toMatchObject([{ method: 'POST', url: '/p?q=1', body: '{}' }])
})

test('one connection serves calls that follow each other', async () => {
  const { world, get } = await ready()
  for (let count = 0; count < 5; count++) {
    await world.drive(get(1000))
    await world.clock.advance(100_000)
  }
  expect(world.network.links).toHaveLength(1)
})

test('no answer within the time is NO_MANAGER, and leaves no timer and no connection', async () => {
  const { world, peer, get } = await ready()
  peer.answer = () => undefined
  await expect(world.drive(get(3000))).rejects.toMatchObject({
    code: 'NO_MANAGER',
    message: expect.stringMatching(/within 3000 ms/) as string,
  })
  await world.clock.advance(10)
  expect(world.clock.eventCount).toBe(0)
  peer.process.kill()
  await world.clock.advance(10)
  expect(world.network.links).toEqual([])
})

test('nobody listening is NO_MANAGER with the cause', async () => {
  const { world, peer, get } = await ready()
  peer.process.kill()
  await expect(world.drive(get(3000))).rejects.toMatchObject({
    code: 'NO_MANAGER',
    cause: { code: 'ECONNREFUSED' },
  })
})

test('a connection that breaks in the middle of an answer is NO_MANAGER', async () => {
  const { world, peer, get } = await ready()
  peer.answer = () => ({ headers: { 'content-length': '1000' }, body: 'short' })
  const answer = get(3000)
  void answer.catch(() => undefined)
  await world.clock.advance(50)
  peer.process.kill()
  await expect(world.drive(answer)).rejects.toMatchObject({ code: 'NO_MANAGER' })
})

test('an abort ends the call with its reason, before it began too', async () => {
  const { world, peer, get } = await ready()
  peer.answer = () => undefined
  const abort = new AbortController()
  const answer = get(3000, abort.signal)
  void answer.catch(() => undefined)
  await world.clock.advance(50)
  abort.abort(new Error('enough'))
  await expect(world.drive(answer)).rejects.toThrow('enough')
  await expect(get(3000, abort.signal)).rejects.toThrow('enough')
})

test('closing ends what is under way and the connections', async () => {
  const { world, peer, transport, get } = await ready()
  peer.answer = () => undefined
  const answer = get(3000)
  void answer.catch(() => undefined)
  await world.clock.advance(50)
  await world.drive(transport.close(new ShuffleError('CANCELLED', 'closed')))
  await expect(world.drive(answer)).rejects.toMatchObject({ code: 'CANCELLED' })
  await expect(get(3000)).rejects.toMatchObject({ code: 'CANCELLED' })
  await world.clock.advance(50)
  expect(world.network.links).toEqual([])
})
