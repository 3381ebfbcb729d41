import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'

import {
  countedBetween,
  parseCounters,
  readCounters,
  zeroCounters,
} from '../../cli/worker-counters.ts'

const text = `# HELP sluice_worker_data_bytes_total Bytes of data frames.
# TYPE sluice_worker_data_bytes_total counter
sluice_worker_data_bytes_total{direction="in"} 100
sluice_worker_data_bytes_total{direction="out"} 90
sluice_worker_committed_uncompressed_bytes_total 250
sluice_worker_other 7
`
const counters = { takenBytes: 100, takenUncompressedBytes: 250, givenBytes: 90 }

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function serve(answer: string, token?: string): Promise<string> {
  const server = createServer((request, response) => {
    const isAllowed = token === undefined || request.headers.authorization === `Bearer ${token}`
    response.writeHead(isAllowed && request.url === '/metrics' ? 200 : 401).end(answer)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('counters are read from a text of Prometheus', () => {
  expect(parseCounters(text)).toEqual(counters)
  expect(parseCounters('')).toEqual(zeroCounters)
})

test('what was counted in between is summed over workers, a new start beginning at zero', () => {
  const of = (bytes: number) => ({ ...zeroCounters, takenBytes: bytes })
  const before = new Map([
    ['a', of(100)],
    ['b', of(50)],
    ['gone', of(9)],
  ])
  const after = new Map([
    ['a', of(150)],
    ['b', of(20)],
    ['new', of(1)],
  ])
  expect(countedBetween(before, after).takenBytes).toBe(50 + 20 + 1)
})

test('workers that answer are read, with the token; others are left out', async () => {
  const [open, closed] = [await serve(text), await serve(text, 'secret')]
  const found = await readCounters([open, closed, 'http://127.0.0.1:1'])
  expect([...found]).toEqual([[open, counters]])
  expect((await readCounters([closed], 'secret')).size).toBe(1)
})
