// Proof that a client knows the shared token, without the token travelling: the worker sends random
// bytes, the client answers with a MAC over them and over whom it talks to.
//
//   HMAC-SHA-256(token, | u32 length | challenge | u32 length | cluster id | u32 length | worker id |)

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ClusterId, WorkerId } from '../common/ids.ts'

/** Random bytes in a challenge of this version. */
export const challengeLength = 32

export interface ChallengeFacts {
  readonly token: string
  readonly challenge: Uint8Array
  readonly clusterId: ClusterId
  readonly workerId: WorkerId
}

export function challengeAnswer(facts: ChallengeFacts): Uint8Array {
  const mac = createHmac('sha256', facts.token)
  for (const part of [facts.challenge, Buffer.from(facts.clusterId), Buffer.from(facts.workerId)]) {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(part.length)
    mac.update(length).update(part)
  }
  return new Uint8Array(mac.digest())
}

/** Compares in a time that doesn't tell where the difference is. */
export function isRightAnswer(facts: ChallengeFacts, answer: Uint8Array): boolean {
  const expected = challengeAnswer(facts)
  return answer.length === expected.length && timingSafeEqual(answer, expected)
}
