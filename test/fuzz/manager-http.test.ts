import fc from 'fast-check'
import { expect, test } from 'vitest'
import { managerApi } from '../../client/manager/api.ts'
import { managerApp } from '../support/manager-app.ts'
import { fuzzBudget } from './budget.ts'

interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly minimum?: number
  readonly maximum?: number
}

const anything = fc.oneof(
  fc.constantFrom<unknown>(null, '', 0, -1, 1.5, 2 ** 53, true, [], {}, 'x'.repeat(300)),
  fc.jsonValue({ maxDepth: 2 }),
)
const ids = fc.constantFrom('job', 'w1', 'd', 'a_1', 'client', 'r', 'x y', '', 'é')

/** What the schema asks for, most of the time. */
function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 40, arbitrary: rightOf(schema) }, { weight: 1, arbitrary: anything })
}

function rightOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf))
  switch (schema.type) {
    case 'string':
      return fc.oneof(ids, fc.string({ maxLength: 20 }))
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number': {
      const { minimum = 0, maximum = 2 ** 53 - 1 } = schema
      const small = fc.integer({ min: minimum, max: Math.min(maximum, minimum + 5) })
      return fc.oneof(small, fc.constant(minimum), fc.constant(maximum))
    }
    case 'array':
      return fc.array(valueOf(schema.items ?? {}), { maxLength: 4 })
    case 'object':
      return objectOf(schema)
    default:
      return anything
  }
}

function objectOf({ properties = {}, required = [], patternProperties }: Schema) {
  const values = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, valueOf(schema)]),
  )
  const [pattern] = Object.values(patternProperties ?? {})
  if (pattern !== undefined) return fc.dictionary(ids, valueOf(pattern), { maxKeys: 3 })
  return fc.record(values, { requiredKeys: [...required] })
}

const calls = Object.values(managerApi).map((route) =>
  valueOf((route.body ?? {}) as Schema).map((body) => ({ route, body })),
)

const params: Readonly<Record<string, string>> = { jobId: 'job', workerId: 'w1', dataSetId: 'd' }

test('any body at any route is answered, never with a failure of the manager itself', async () => {
  const app = await managerApp()
  app.state.register('w1')
  await app.state.clock.advance(6000)
  app.state.registerJob()
  let taken = 0
  await fc.assert(
    fc.asyncProperty(fc.oneof(...calls), async ({ route, body }) => {
      const path = route.path.replace(/:([A-Za-z]+)/g, (_, name: string) => params[name] ?? 'x')
      const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
      // A long poll would wait for a clock that stands still.
      const sent = isObject && 'waitMs' in body ? { ...body, waitMs: 0 } : body
      const answer = await app.call(route.method, path, route.body === undefined ? undefined : sent)
      if (answer.status === 200) taken += 1
      expect({ path, sent, answer: answer.status === 500 ? answer.body : '' }).toEqual({
        path,
        sent,
        answer: '',
      })
    }),
    fuzzBudget(),
  )
  expect(taken).toBeGreaterThan(0)
  expect((await app.call('GET', '/healthz')).status).toBe(200)
})
