import { Counter, Gauge, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { complaintAboutPatterns, metricsText } from '../../../client/common/metric-filter.ts'

const registry = new Registry()
const registers = [registry]
new Gauge({ name: 'a_bytes', help: 'A.', registers }).set(1)
new Counter({ name: 'a_total', help: 'B.', labelNames: ['x'] as const, registers }).inc({ x: 'y' })
new Gauge({ name: 'ba_bytes', help: 'C.', registers }).set(3)

test('without expressions everything is shown', async () => {
  expect(await metricsText(registry, [])).toBe(await registry.metrics())
})

test('with expressions only metrics whose whole name fits one', async () => {
  const names = async (...patterns: string[]) =>
    [...(await metricsText(registry, patterns)).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
  expect(await names('a_.*')).toEqual(['a_bytes', 'a_total'])
  expect(await names('a_bytes', 'ba_bytes')).toEqual(['a_bytes', 'ba_bytes'])
  expect(await names('a_bytes|ba')).toEqual(['a_bytes'])
  expect(await names('bytes')).toEqual([])
})

test('the text of what is shown is the text that it has among all', async () => {
  expect(await metricsText(registry, ['.*'])).toBe(await registry.metrics())
})

test('what is no expression, and too much of it, is refused', () => {
  expect(complaintAboutPatterns(['a.*', 'b|c'])).toBeUndefined()
  expect(complaintAboutPatterns(['('])).toMatch(/--metrics-allow has an expression that is none/)
  expect(complaintAboutPatterns(['x'.repeat(501)])).toMatch(/500 characters/)
  expect(complaintAboutPatterns(Array<string>(101).fill('x'))).toMatch(/100 expressions/)
})
