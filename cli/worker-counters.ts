// What the workers' own counters say of a job: read before and after it from their /metrics.

import { request } from 'undici'

import { ShuffleError } from '../client/index.ts'

/** The counters that are read, by the name that summaries give them. */
export const counterNames = {
  takenBytes: 'sluice_worker_written_uncompressed_bytes_total',
  takenStoredBytes: 'sluice_worker_written_bytes_total',
  givenBytes: 'sluice_worker_read_bytes_total',
} as const

export type CounterName = keyof typeof counterNames
export type WorkerCounters = Readonly<Record<CounterName, number>>

/** Counters by the address of the worker that they are of. */
export type CountersByWorker = ReadonlyMap<string, WorkerCounters>

export const zeroCounters: WorkerCounters = { takenBytes: 0, takenStoredBytes: 0, givenBytes: 0 }

const scrapeTimeoutMs = 5000

/** The counters of all workers at these addresses; a worker that does not answer is left out. */
export async function readCounters(
  urls: readonly string[],
  token?: string,
): Promise<CountersByWorker> {
  const found = new Map<string, WorkerCounters>()
  await Promise.all(
    urls.map(async (url) => {
      try {
        found.set(url, parseCounters(await scrape(url, token)))
      } catch {
        // It is gone, or new and not yet up: then it has counted nothing that can be read.
      }
    }),
  )
  return found
}

/** The counters in a text of Prometheus, summed over labels. */
export function parseCounters(text: string): WorkerCounters {
  const sums: Record<CounterName, number> = { ...zeroCounters }
  for (const line of text.split('\n')) {
    const [, name, value] = /^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)/.exec(line) ?? []
    for (const [key, metric] of Object.entries(counterNames) as [CounterName, string][]) {
      if (name === metric) sums[key] += Number(value)
    }
  }
  return sums
}

/** What was counted in between. A worker that started anew began again at zero. */
export function countedBetween(before: CountersByWorker, after: CountersByWorker): WorkerCounters {
  const sums: Record<CounterName, number> = { ...zeroCounters }
  for (const [url, counters] of after) {
    const known = before.get(url) ?? zeroCounters
    for (const key of Object.keys(counterNames) as CounterName[]) {
      const isNew = counters[key] < known[key]
      sums[key] += isNew ? counters[key] : counters[key] - known[key]
    }
  }
  return sums
}

async function scrape(url: string, token: string | undefined): Promise<string> {
  const { statusCode, body } = await request(`${url}/metrics`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    headersTimeout: scrapeTimeoutMs,
    bodyTimeout: scrapeTimeoutMs,
  })
  const text = await body.text()
  if (statusCode === 200) return text
  throw new ShuffleError('WORKER_UNREACHABLE', `${url}/metrics answered ${statusCode}`)
}
