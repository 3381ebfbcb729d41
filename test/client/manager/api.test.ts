import { expect, test } from 'vitest'
import { managerApi } from '../../../client/manager/api.ts'

test('no two calls share method and path', () => {
  const names = Object.values(managerApi).map((route) => `${route.method} ${route.path}`)
  expect(new Set(names).size).toBe(names.length)
})

test('every call says what it is for, and every field of a body what it means', () => {
  for (const route of Object.values(managerApi)) {
    expect(route.about).toMatch(/^[A-Z].*\.$/)
    const body = route.body as
      { properties?: Record<string, { description?: string; type?: string }> } | undefined
    for (const [name, schema] of Object.entries(body?.properties ?? {})) {
      const isContainer = schema.type === 'array' || schema.type === 'object'
      if (!isContainer) expect(schema.description, `${route.path} ${name}`).toBeTruthy()
    }
  }
})

test('calls that change something are PUT, POST or DELETE', () => {
  for (const [name, route] of Object.entries(managerApi)) {
    const isQuery = /^(list|describe)/.test(name)
    expect(route.method === 'GET', name).toBe(isQuery)
  }
})
