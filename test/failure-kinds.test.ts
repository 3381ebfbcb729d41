import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const table = readFileSync(new URL('./failure-kinds.md', import.meta.url), 'utf8')
const rows = table
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (What goes wrong|---)/.test(line))
  .map((line) => {
    const [, kind = '', path = '', name = ''] = line.split('|').map((cell) => cell.trim())
    return { kind, path: path.replaceAll('`', ''), name: name.replaceAll('\\', '') }
  })

test('each kind of failure has a test, which exists under its name', () => {
  expect(rows.length).toBeGreaterThan(40)
  const missing = rows.filter(({ path, name }) => {
    const source = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
    const quoted = [`'${name}'`, `\`${name}\``, `${name}'`]
    return name === '' || !quoted.some((text) => source.includes(text))
  })
  expect(missing).toEqual([])
})

test('no kind stands there twice', () => {
  const kinds = rows.map(({ kind }) => kind)
  expect(new Set(kinds).size).toBe(kinds.length)
})
