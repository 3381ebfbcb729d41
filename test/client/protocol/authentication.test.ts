import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { parseClusterId, parseWorkerId } from '../../../client/common/ids.ts'
import { challengeAnswer, isRightAnswer } from '../../../client/protocol/authentication.ts'
import { wireJsonFile } from './support/wire-json.ts'

const facts = {
  token: 'secret',
  challenge: Uint8Array.from([1, 2, 3]),
  clusterId: parseClusterId('ab'),
  workerId: parseWorkerId('c'),
}

describe('challengeAnswer', () => {
  it('is the HMAC over challenge, cluster and worker, each behind its length', () => {
    const message = Buffer.from('00000003010203' + '000000026162' + '0000000163', 'hex')
    const expected = createHmac('sha256', 'secret').update(message).digest('hex')
    expect(Buffer.from(challengeAnswer(facts)).toString('hex')).toBe(expected)
  })

  it('makes the golden vectors', () => {
    for (const vector of wireJsonFile.authentication) {
      const answer = challengeAnswer({
        token: vector.token,
        challenge: Buffer.from(vector.challenge, 'hex'),
        clusterId: parseClusterId(vector.clusterId),
        workerId: parseWorkerId(vector.workerId),
      })
      expect(Buffer.from(answer).toString('hex')).toBe(vector.answer)
    }
  })
})

describe('isRightAnswer', () => {
  it('takes the answer of the same token, challenge, cluster and worker alone', () => {
    const answer = challengeAnswer(facts)
    expect(isRightAnswer(facts, answer)).toBe(true)
    expect(isRightAnswer({ ...facts, token: 'Secret' }, answer)).toBe(false)
    expect(isRightAnswer({ ...facts, challenge: Uint8Array.from([1, 2, 4]) }, answer)).toBe(false)
    expect(isRightAnswer({ ...facts, clusterId: parseClusterId('abc') }, answer)).toBe(false)
    expect(isRightAnswer({ ...facts, workerId: parseWorkerId('d') }, answer)).toBe(false)
  })

  it('refuses an answer of another length', () => {
    expect(isRightAnswer(facts, challengeAnswer(facts).subarray(0, 31))).toBe(false)
    expect(isRightAnswer(facts, new Uint8Array(0))).toBe(false)
  })
})
