import { describe, expect, it } from 'vitest'
import { parseClusterId, parseWorkerId } from '../../../client/common/ids.ts'
import {
  acceptHello,
  acceptHelloAck,
  authenticateFields,
  checkAuthenticate,
  helloAckFields,
  helloFields,
  negotiate,
} from '../../../client/protocol/handshake.ts'
import { clientHandshake, workerHandshake } from './support/recording-side.ts'

const hello = helloFields(clientHandshake, 7_000)
const ack = helloAckFields(workerHandshake, 8_000)

describe('negotiate', () => {
  it.each([
    [{ min: 1, max: 1 }, { min: 1, max: 1 }, 1],
    [{ min: 1, max: 5 }, { min: 3, max: 9 }, 5],
    [{ min: 3, max: 9 }, { min: 1, max: 5 }, 5],
    [{ min: 1, max: 9 }, { min: 4, max: 4 }, 4],
  ])('of %j and %j is %i', (own, peer, version) => {
    expect(negotiate(own, peer)).toBe(version)
  })

  it.each([
    [
      { min: 1, max: 2 },
      { min: 3, max: 4 },
    ],
    [
      { min: 3, max: 4 },
      { min: 1, max: 2 },
    ],
  ])('of %j and %j has no version', (own, peer) => {
    expect(() => negotiate(own, peer)).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED_VERSION',
        fields: { ownMin: own.min, ownMax: own.max, peerMin: peer.min, peerMax: peer.max },
      }) as Error,
    )
  })
})

describe('Hello and HelloAck', () => {
  it('give both sides the same session', () => {
    const common = {
      version: 1,
      features: 0n,
      clusterId: workerHandshake.clusterId,
      workerId: workerHandshake.workerId,
      workerEpoch: 42,
      bufferSizeBytes: 32_768,
    }
    expect(acceptHello(workerHandshake, hello)).toEqual({
      ...common,
      peerHeartbeatIntervalMs: 7_000,
      peerSoftware: 'test client 1',
    })
    expect(acceptHelloAck(clientHandshake, ack)).toEqual({
      ...common,
      peerHeartbeatIntervalMs: 8_000,
      peerSoftware: 'test worker 2',
    })
  })

  it('are refused by either side for the same reasons', () => {
    const otherCluster = parseClusterId('cluster-2')
    const otherWorker = parseWorkerId('worker-2')
    const refusals = [
      [{ magic: 1 }, { magic: 1 }, 'PROTOCOL'],
      [{ versionMin: 9, versionMax: 9 }, { versionMin: 9, versionMax: 9 }, 'UNSUPPORTED_VERSION'],
      [{ clusterId: otherCluster }, { clusterId: otherCluster }, 'UNAUTHENTICATED'],
      [{ expectedWorkerId: otherWorker }, { workerId: otherWorker }, 'WORKER_CHANGED'],
    ] as const
    for (const [helloChange, ackChange, code] of refusals) {
      const refused = expect.objectContaining({ code }) as Error
      expect(() => acceptHello(workerHandshake, { ...hello, ...helloChange })).toThrow(refused)
      expect(() => acceptHelloAck(clientHandshake, { ...ack, ...ackChange })).toThrow(refused)
    }
  })

  it('take whoever answers when the client means nobody', () => {
    const anyone = { ...clientHandshake, clusterId: undefined, expectedWorkerId: undefined }
    expect(acceptHelloAck(anyone, ack).workerId).toBe('worker-1')
    expect(acceptHello(workerHandshake, helloFields(anyone, 1)).clusterId).toBe('cluster-1')
  })
})

describe('Authenticate', () => {
  const token = 'secret'
  const guarded = { ...workerHandshake, token }

  it('is wanted only by a worker that has a token', () => {
    expect(ack.challenge).toHaveLength(0)
    expect(authenticateFields({ ...clientHandshake, token }, ack)).toBeUndefined()
    expect(helloAckFields(guarded, 1).challenge).toEqual(guarded.challenge)
  })

  it('passes with the token of the worker alone', () => {
    const challenge = helloAckFields(guarded, 1)
    const answer = authenticateFields({ ...clientHandshake, token }, challenge)!
    checkAuthenticate(guarded, answer)
    const wrong = authenticateFields({ ...clientHandshake, token: 'Secret' }, challenge)!
    const refused = expect.objectContaining({ code: 'UNAUTHENTICATED' }) as Error
    expect(() => {
      checkAuthenticate(guarded, wrong)
    }).toThrow(refused)
    expect(() => {
      checkAuthenticate(workerHandshake, answer)
    }).toThrow(refused)
    expect(() => authenticateFields(clientHandshake, challenge)).toThrow(refused)
  })
})
