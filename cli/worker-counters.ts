// What the workers' own counters say of a job: read before and after it from their /metrics.

import { request } from 'undici'

import { ShuffleError } from '../client/index.ts'

/** The counters that are read, as samples of the workers, by the name that summaries give them. */
export const counterNames = {
  /** Data frames of producers, as compressed by them. */
  takenBytes: 'sluice_worker_data_bytes_total{direction="in"}',
  /** Of committed partitions, before compression. */
  takenUncompressedBytes: 'sluice_worker_committed_uncompressed_bytes_total',
  /** Data frames to consumers. */
  givenBytes: 'sluice_worker_data_bytes_total{direction="out"}',
} as const

export type CounterName = keyof typeof counterNames
export type WorkerCounters = Readonly<Record<CounterName, number>>

/** Counters by the address of the worker that they are of. */
export type CountersByWorker = ReadonlyMap<string, WorkerCounters>

export const zeroCounters: WorkerCounters = {
  takenBytes: 0,
  takenUncompressedBytes: 0,
  givenBytes: 0,
}

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

/** The counters in a text of Prometheus. */
export function parseCounters(text: string): WorkerCounters {
  const samples = new Map(text.split('\n').map(splitSample))
  const valueOf = (name: CounterName) => samples.get(counterNames[name]) ?? 0
  return {
    takenBytes: valueOf('takenBytes'),
    takenUncompressedBytes: valueOf('takenUncompressedBytes'),
    givenBytes: valueOf('givenBytes'),
  }
}

function splitSample(line: string): readonly [string, number] {
  const space = line.lastIndexOf(' ')
  return [line.slice(0, space), Number(line.slice(space + 1))]
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
