import { expect, it } from 'vitest'
import { openSink, pump } from '../../bench/loopback-pump.ts'

it('what is pumped arrives, once for each call', async () => {
  const sink = await openSink()
  const load = { port: sink.port, connectionCount: 2, totalBytes: 5_000_000 }
  for (let round = 0; round < 2; round += 1) {
    const sent = await pump(load)
    expect(sent).toBe(4 * 1024 * 1024)
    await sink.received(sent)
  }
  sink.close()
})
