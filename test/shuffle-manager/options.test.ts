import { expect, test } from 'vitest'
import { parseOptions } from '../../client/common/options.ts'
import { managerOptions } from '../../shuffle-manager/options.ts'

const parse = (...argv: string[]) => parseOptions(managerOptions, { argv }).values

test('the defaults are the numbers of the control plane', () => {
  expect(parse()).toMatchObject({
    port: 9700,
    heartbeatIntervalMs: 5_000,
    workerSuspectMs: 15_000,
    workerRecoveryMs: 180_000,
    graceMs: 30_000,
    settleMs: 5_000,
    jobTimeoutMs: 600_000,
    placement: 'round-robin',
  })
})

test('a set of numbers that do not fit together is refused', () => {
  expect(() => parse('--worker-suspect-after', '6s')).toThrow(/twice --heartbeat-interval/)
  expect(() => parse('--worker-recovery-time', '10s')).toThrow(/--worker-recovery-time must be/)
  expect(() => parse('--job-timeout', '10s')).toThrow(/--job-timeout must be/)
})

test('what can not be a cluster id is refused', () => {
  expect(() => parse('--cluster-id', 'a b')).toThrow(/cluster-id/)
})
