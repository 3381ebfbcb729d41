import { expect, test } from 'vitest'
import { checkAccess } from '../../../shuffle-manager/http/access.ts'

const rules = { clusterId: 'blue', token: 'secret', metricsNeedToken: false }

function check(path: string, given: Record<string, string>, change: Partial<typeof rules> = {}) {
  return () => {
    checkAccess({ ...rules, ...change }, { path, header: (name) => given[name] })
  }
}

test('health is open to all', () => {
  for (const path of ['/healthz', '/readyz']) {
    expect(check(path, { 'sluice-cluster': 'red' })).not.toThrow()
  }
})

test('the right token opens, in whatever case the scheme is written', () => {
  expect(check('/v1/jobs', { authorization: 'Bearer secret' })).not.toThrow()
  expect(check('/v1/jobs', { authorization: 'bearer secret' })).not.toThrow()
})

test('a missing token, a wrong one and another scheme are refused', () => {
  expect(check('/v1/jobs', {})).toThrow(/needs the cluster's token/)
  expect(check('/v1/jobs', { authorization: 'Basic secret' })).toThrow(/needs the cluster's token/)
  expect(check('/v1/jobs', { authorization: 'Bearer secrets' })).toThrow(/is not the cluster's/)
})

test('another cluster is refused by name, with the right token too', () => {
  const given = { authorization: 'Bearer secret', 'sluice-cluster': 'red' }
  expect(check('/v1/jobs', given)).toThrow(/manager of cluster blue, not of red/)
})

test('metrics are open unless the option says otherwise', () => {
  expect(check('/metrics', {})).not.toThrow()
  expect(check('/metrics', {}, { metricsNeedToken: true })).toThrow(/needs the cluster's token/)
})
