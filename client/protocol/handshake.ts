// Who the two ends of a connection are, and whether they may talk. Pure: the order of the frames is
// kept by ProtocolConnection, which calls these.

import { ShuffleError } from '../common/errors.ts'
import type { ClusterId, WorkerId } from '../common/ids.ts'
import { challengeAnswer, isRightAnswer } from './authentication.ts'
import { type MessageFields, protocolMagic, protocolVersions } from './messages.ts'

export interface VersionRange {
  readonly min: number
  readonly max: number
}

interface CommonHandshake {
  /** Name and version of this side's software, for people. */
  readonly software: string
  /** What this side speaks; by default all that this code does. */
  readonly versions?: VersionRange
  readonly features?: bigint
}

/** What a client says of itself and wants of the worker. */
export interface ClientHandshake extends CommonHandshake {
  readonly role: 'client'
  /** Undefined: whichever answers. */
  readonly clusterId: ClusterId | undefined
  readonly expectedWorkerId: WorkerId | undefined
  /** The shared token, when the client has one. */
  readonly token: string | undefined
}

/** What a worker says of itself and wants of a client. */
export interface WorkerHandshake extends CommonHandshake {
  readonly role: 'worker'
  readonly clusterId: ClusterId
  readonly workerId: WorkerId
  readonly workerEpoch: number
  readonly bufferSizeBytes: number
  /** Undefined: clients need none. */
  readonly token: string | undefined
  /** Random bytes made for this connection alone (32); not used without a token. */
  readonly challenge: Uint8Array
}

export type Handshake = ClientHandshake | WorkerHandshake

/** What both sides agreed on. */
export interface Session {
  readonly version: number
  /** The features that both sides have. */
  readonly features: bigint
  readonly clusterId: ClusterId
  readonly workerId: WorkerId
  readonly workerEpoch: number
  /** The largest buffer size that a data set may have on this worker. */
  readonly bufferSizeBytes: number
  readonly peerHeartbeatIntervalMs: number
  /** Name and version of the other side, for people. */
  readonly peerSoftware: string
}

const noChallenge = new Uint8Array(0)

/** The highest version that both speak; throws UNSUPPORTED_VERSION when there is none. */
export function negotiate(own: VersionRange, peer: VersionRange): number {
  const version = Math.min(own.max, peer.max)
  if (version >= own.min && version >= peer.min) return version
  throw new ShuffleError(
    'UNSUPPORTED_VERSION',
    `no protocol version in common: this side speaks ${rangeText(own)}, the other ${rangeText(peer)}; upgrade the older one`,
    { fields: { ownMin: own.min, ownMax: own.max, peerMin: peer.min, peerMax: peer.max } },
  )
}

export function helloFields(
  own: ClientHandshake,
  heartbeatIntervalMs: number,
): MessageFields<'Hello'> {
  const versions = own.versions ?? protocolVersions
  return {
    magic: protocolMagic,
    versionMin: versions.min,
    versionMax: versions.max,
    features: own.features ?? 0n,
    clusterId: own.clusterId,
    expectedWorkerId: own.expectedWorkerId,
    heartbeatIntervalMs,
    software: own.software,
  }
}

export function helloAckFields(
  own: WorkerHandshake,
  heartbeatIntervalMs: number,
): MessageFields<'HelloAck'> {
  const versions = own.versions ?? protocolVersions
  return {
    magic: protocolMagic,
    versionMin: versions.min,
    versionMax: versions.max,
    features: own.features ?? 0n,
    clusterId: own.clusterId,
    workerId: own.workerId,
    workerEpoch: own.workerEpoch,
    heartbeatIntervalMs,
    bufferSizeBytes: own.bufferSizeBytes,
    challenge: own.token === undefined ? noChallenge : own.challenge,
    software: own.software,
  }
}

/** What a worker makes of a client's Hello; throws the reason to refuse it. */
export function acceptHello(own: WorkerHandshake, hello: MessageFields<'Hello'>): Session {
  checkMagic(hello.magic)
  const version = negotiate(own.versions ?? protocolVersions, rangeOf(hello))
  checkCluster({ wanted: hello.clusterId, answering: own.clusterId })
  checkWorker({ wanted: hello.expectedWorkerId, answering: own.workerId })
  return {
    version,
    features: (own.features ?? 0n) & hello.features,
    clusterId: own.clusterId,
    workerId: own.workerId,
    workerEpoch: own.workerEpoch,
    bufferSizeBytes: own.bufferSizeBytes,
    peerHeartbeatIntervalMs: hello.heartbeatIntervalMs,
    peerSoftware: hello.software,
  }
}

/** What a client makes of a worker's HelloAck; throws the reason to give up. */
export function acceptHelloAck(own: ClientHandshake, ack: MessageFields<'HelloAck'>): Session {
  checkMagic(ack.magic)
  const version = negotiate(own.versions ?? protocolVersions, rangeOf(ack))
  checkCluster({ wanted: own.clusterId, answering: ack.clusterId })
  checkWorker({ wanted: own.expectedWorkerId, answering: ack.workerId })
  return {
    version,
    features: (own.features ?? 0n) & ack.features,
    clusterId: ack.clusterId,
    workerId: ack.workerId,
    workerEpoch: ack.workerEpoch,
    bufferSizeBytes: ack.bufferSizeBytes,
    peerHeartbeatIntervalMs: ack.heartbeatIntervalMs,
    peerSoftware: ack.software,
  }
}

/** A client's answer to the challenge of HelloAck; undefined where none is wanted. */
export function authenticateFields(
  own: ClientHandshake,
  ack: MessageFields<'HelloAck'>,
): MessageFields<'Authenticate'> | undefined {
  if (ack.challenge.length === 0) return undefined
  if (own.token === undefined) {
    throw new ShuffleError(
      'UNAUTHENTICATED',
      `worker ${ack.workerId} wants the token of cluster ${ack.clusterId} and this client has none; configure it`,
      { fields: { workerId: ack.workerId, clusterId: ack.clusterId } },
    )
  }
  const facts = { token: own.token, challenge: ack.challenge, ...idsOf(ack) }
  return { mechanism: 'hmacSha256', answer: challengeAnswer(facts) }
}

/** Throws UNAUTHENTICATED when the answer is wrong. */
export function checkAuthenticate(
  own: WorkerHandshake,
  fields: MessageFields<'Authenticate'>,
): void {
  const facts = { token: own.token ?? '', challenge: own.challenge, ...idsOf(own) }
  if (own.token !== undefined && isRightAnswer(facts, fields.answer)) return
  throw new ShuffleError(
    'UNAUTHENTICATED',
    `the token of the client is not that of cluster ${own.clusterId}`,
    { fields: idsOf(own) },
  )
}

function idsOf(side: { clusterId: ClusterId; workerId: WorkerId }) {
  return { clusterId: side.clusterId, workerId: side.workerId }
}

function rangeOf(fields: { versionMin: number; versionMax: number }): VersionRange {
  return { min: fields.versionMin, max: fields.versionMax }
}

function rangeText(range: VersionRange): string {
  return range.min === range.max
    ? String(range.min)
    : `${String(range.min)} to ${String(range.max)}`
}

function checkMagic(magic: number): void {
  if (magic === protocolMagic) return
  throw new ShuffleError(
    'PROTOCOL',
    `the other side does not speak this protocol: magic 0x${magic.toString(16)}; check host and port`,
    { fields: { magic } },
  )
}

interface Identities<T> {
  readonly wanted: T | undefined
  readonly answering: T
}

function checkCluster({ wanted, answering }: Identities<ClusterId>): void {
  if (wanted === undefined || wanted === answering) return
  throw new ShuffleError(
    'UNAUTHENTICATED',
    `the client belongs to cluster ${wanted}, the worker to cluster ${answering}; check the addresses and cluster ids configured`,
    { fields: { wantedClusterId: wanted, clusterId: answering } },
  )
}

function checkWorker({ wanted, answering }: Identities<WorkerId>): void {
  if (wanted === undefined || wanted === answering) return
  throw new ShuffleError(
    'WORKER_CHANGED',
    `worker ${answering} answers where ${wanted} was expected; ask the manager for its present address`,
    { fields: { wantedWorkerId: wanted, workerId: answering } },
  )
}
