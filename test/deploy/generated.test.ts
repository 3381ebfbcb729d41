// The generated files of docs/ and helm/ are what the sources make today.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot, readText } from '../support/source-tree.ts'
import { chartValues, valuesWithoutComment } from '../support/deploy/chart-readme.ts'
import { generatedFiles } from '../support/deploy/generate.ts'
import { valuesSchema } from '../support/deploy/values-schema.ts'

const generated = [...generatedFiles()]

test.each(generated)('%s is what npm run generate makes', (path, text) => {
  expect(readText(path)).toBe(text)
})

test('the dashboards are those that are generated, and no others', () => {
  const folder = 'helm/files/dashboards'
  expect(
    readdirSync(join(projectRoot, folder))
      .sort()
      .map((name) => `${folder}/${name}`),
  ).toEqual(
    generated
      .map(([path]) => path)
      .filter((path) => path.startsWith(folder))
      .sort(),
  )
})

test('every value of the chart has a comment', () => {
  expect(valuesWithoutComment(readText('helm/values.yaml'))).toEqual([])
})

test('every value of the chart is in the schema, and every key of the schema is a value', () => {
  const values = chartValues(readText('helm/values.yaml')).map(({ key }) => key)
  const schema = keysOf(valuesSchema(), '')
  const isKnown = (key: string, others: readonly string[]) =>
    others.some((other) => other === key || other.startsWith(`${key}.`))
  const isInside = (key: string, others: readonly string[]) =>
    others.some((other) => key.startsWith(`${other}.`))
  expect(values.filter((key) => !isKnown(key, schema))).toEqual([])
  // What Helm adds by itself has no default.
  const unlisted = schema.filter((key) => !isKnown(key, values) && !isInside(key, values))
  expect(unlisted).toEqual(['global'])
})

/** Paths of the leaves of a schema; a list is a leaf. */
function keysOf(schema: unknown, prefix: string): string[] {
  const { properties } = schema as { readonly properties?: Readonly<Record<string, unknown>> }
  if (properties === undefined) return [prefix]
  return Object.entries(properties).flatMap(([key, inner]) =>
    keysOf(inner, prefix === '' ? key : `${prefix}.${key}`),
  )
}
