// Who the two ends of a connection are, and whether they may talk. Pure: the order of the frames is
// kept by ProtocolConnection, which calls these.

import type { ClusterId, WorkerId } from '../common/ids.ts'

/** What a client says of itself and wants of the worker. */
export interface ClientHandshake {
  readonly role: 'client'
  readonly software: string
  /** Undefined: whichever answers. */
  readonly clusterId: ClusterId | undefined
  readonly expectedWorkerId: WorkerId | undefined
  /** The shared token, when the client has one. */
  readonly token: string | undefined
}

/** What a worker says of itself and wants of a client. */
export interface WorkerHandshake {
  readonly role: 'worker'
  readonly software: string
  readonly clusterId: ClusterId
  readonly workerId: WorkerId
  readonly workerEpoch: number
  readonly bufferSizeBytes: number
  /** Undefined: clients need none. */
  readonly token: string | undefined
  /** Random bytes made for this connection (32); ignored without a token. */
  readonly challenge: Uint8Array
}

export type Handshake = ClientHandshake | WorkerHandshake

/** What both sides agreed on. */
export interface Session {
  readonly version: number
  readonly features: bigint
  readonly clusterId: ClusterId
  readonly workerId: WorkerId
  readonly workerEpoch: number
  /** The largest buffer size that a data set may have on this worker. */
  readonly bufferSizeBytes: number
  /** Name and version of the other side, for people. */
  readonly peerSoftware: string
}
