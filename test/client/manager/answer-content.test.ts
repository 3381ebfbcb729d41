import { expect, test } from 'vitest'
import { contentOf } from '../../../client/manager/answer-content.ts'
import { managerApi } from '../../../client/manager/api.ts'

const { registerWorker } = managerApi
const managers = { 'sluice-manager-epoch': '1' }
const url = 'http://manager:9700'

function read(body: string, status = 200, headers: Readonly<Record<string, string>> = managers) {
  return contentOf(registerWorker, { status, headers, body }, url)
}

test('a worker takes no interval that was not told', () => {
  expect(read('{"heartbeatIntervalMs":5000}')).toEqual({ heartbeatIntervalMs: 5000 })
  for (const body of ['', '{}', '{"heartbeatIntervalMs":null}', '{"heartbeatIntervalMs":"5s"}']) {
    expect(() => read(body)).toThrow(/without heartbeatIntervalMs in its body/)
  }
  expect(() => read('[]')).toThrow(/without an object in its body/)
})

test('an error is taken from whoever knows the form, a status without one from nobody', () => {
  const error = { code: 'BUSY', message: 'not now', fields: {} }
  expect(() => read(JSON.stringify({ error }), 503, {})).toThrow(/not now/)
  expect(() => read('{"error":"busy"}', 400, {})).toThrow(
    /PUT \/v1\/workers\/:workerId at http:\/\/manager:9700 is not a shuffle manager: status 400, without an error/,
  )
})

test('an optional field is missed by nobody, but has its kind', () => {
  const describe = (facts: string) =>
    contentOf(
      managerApi.describeDataSet,
      { status: 200, headers: managers, body: `{"version":"v","workers":[],"groups":[]${facts}}` },
      url,
    )
  expect(describe('')).toMatchObject({ version: 'v' })
  expect(() => describe(',"facts":[]')).toThrow(/without facts/)
})
