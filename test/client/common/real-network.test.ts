import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Connection } from '../../../client/common/network.ts'
import { realNetwork } from '../../../client/common/real-network.ts'
import { collect } from '../../support/connection-probe.ts'
import { deferred } from '../../support/deferred.ts'
import { describeNetwork } from '../../support/network-contract.ts'

const host = '127.0.0.1'

/** A listener whose process stands still: the system completes a few connections, then drops dials. */
const listenerScript =
  "const s=require('net').createServer();s.listen(0,'127.0.0.1',1,()=>console.log(s.address().port))"

describe('the real network', () => {
  describeNetwork(() => ({ network: realNetwork, drive: (promise) => promise }))

  test('a dial without an answer ends with ETIMEDOUT after its time', async () => {
    const stopped = spawn(process.execPath, ['-e', listenerScript], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const fillers: Socket[] = []
    try {
      const [line] = (await once(stopped.stdout, 'data')) as [Buffer]
      const port = Number(line.toString())
      stopped.kill('SIGSTOP')
      for (let index = 0; index < 4; index += 1) {
        const filler = connect(port, host)
        filler.on('error', () => undefined)
        fillers.push(filler)
      }
      await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')))
      const dial = realNetwork.connect({ host, port, timeoutMs: 50 })
      await expect(dial).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    } finally {
      for (const filler of fillers) filler.destroy()
      stopped.kill('SIGKILL')
      await once(stopped, 'exit')
    }
  })

  test('a peer that resets is told as ECONNRESET', async () => {
    const accepted = deferred<Connection>()
    const listener = await realNetwork.listen({ host, port: 0 }, accepted.resolve)
    const peer = connect(listener.address.port, host)
    peer.on('error', () => undefined)
    const connection = await accepted.promise
    const probe = collect(connection)
    peer.write('x')
    await probe.received(1)
    peer.resetAndDestroy()
    expect(await probe.closed).toMatchObject({ code: 'ECONNRESET' })
    await listener.close()
  })
})
