import { expect, test } from 'vitest'
import { routeUrl } from '../../../client/manager/route.ts'

test('parameters are escaped, absent queries left out', () => {
  const route = { path: '/v1/jobs/:jobId/data-sets/:dataSetId' }
  const params = { jobId: 'a/b c', dataSetId: 'ü' }
  expect(routeUrl(route, params, {})).toBe('/v1/jobs/a%2Fb%20c/data-sets/%C3%BC')
  expect(routeUrl({ path: '/x' }, {}, { after: '3&4', limit: undefined })).toBe('/x?after=3%264')
})
