// The longer conversations of a ShuffleMaster with the manager: registration with the list, in pages,
// and a batch of allocations.

import { ShuffleError, isShuffleError } from '../common/errors.ts'
import { parseWorkerId, type ClientId } from '../common/ids.ts'
import { managerApi } from '../manager/api.ts'
import { encodeAttempts, encodeKeys, inPages } from '../manager/key-columns.ts'
import { pagesOfGroups } from '../manager/list-pages.ts'
import type { ManagerClient } from '../manager/manager-client.ts'
import type { CallAnswer } from '../manager/route.ts'
import type { AllocationBatch } from './allocation-batches.ts'
import type { MasterJob } from './master-job.ts'
import type { ShuffleDescriptor } from './shuffle-descriptor.ts'

/** Keys of one release call: with the longest ids below the body limit. */
const releaseKeysMax = 4_000

/** Data sets, and workers, of one page of the list: both have room beside its groups. */
const factsPerPageMax = 1_000

/** Registers the job with the epoch that it has, or a new one, and sends its list. */
export async function registerAndReport(
  client: ManagerClient,
  job: MasterJob,
  options: {
    readonly clientId: ClientId
    /** Names this report. */
    readonly report: string
    readonly signal: AbortSignal
  },
): Promise<{ readonly heartbeatIntervalMs: number }> {
  const { jobId, context, jobEpoch } = job
  const { clientId, report, signal } = options
  const isFirst = jobEpoch === undefined
  const registered = await client.call(
    managerApi.registerJob,
    {
      params: { jobId },
      query: {},
      body: {
        clientId,
        ...(context.tenant === undefined ? {} : { tenant: context.tenant }),
        ...(isFirst ? { takeOver: context.takeOver === true } : { jobEpoch }),
      },
    },
    { signal },
  )
  job.jobEpoch = registered.jobEpoch
  const managerEpoch = client.managerEpoch
  const pages = reportPages(job.beginReport())
  for (const [page, content] of pages.entries()) {
    const last = page === pages.length - 1
    const body = { jobEpoch: registered.jobEpoch, report, page, last, ...content }
    await client.call(
      managerApi.reportPartitions,
      { params: { jobId }, query: {}, body },
      { signal },
    )
  }
  job.reportTaken(managerEpoch)
  return { heartbeatIntervalMs: registered.heartbeatIntervalMs }
}

/** The manager knows a data set by its partitions: what is said of it comes with the last of them, or after. */
function reportPages({ groups, dataSets, workers }: ReturnType<MasterJob['beginReport']>) {
  const groupPages = pagesOfGroups(groups)
  const workerPages = inPages(workers, factsPerPageMax)
  const dataSetPages = inPages(dataSets, factsPerPageMax)
  const firstFacts = groupPages.length - 1
  const factsEnd = firstFacts + Math.max(1, dataSetPages.length)
  return Array.from({ length: Math.max(workerPages.length, factsEnd) }, (_, page) => ({
    dataSets: dataSetPages[page - firstFacts] ?? [],
    workers: workerPages[page] ?? [],
    groups: groupPages[page] ?? [],
  }))
}

/** Descriptors in the order of the requests. */
export async function allocateBatch(
  client: ManagerClient,
  batch: AllocationBatch,
  options: {
    readonly bufferSizeBytes: number
    readonly codec: string
    readonly signal: AbortSignal
  },
): Promise<ShuffleDescriptor[]> {
  const { job, facts, requests } = batch
  const answer = await client.call(
    managerApi.allocatePartitions,
    {
      params: { jobId: job.jobId },
      query: {},
      body: {
        jobEpoch: job.jobEpoch ?? 0,
        dataSet: facts,
        ...encodeAttempts(requests.map((request) => request.key)),
        ...hostColumns(requests.map((request) => request.host)),
      },
    },
    { signal: options.signal },
  )
  return descriptorsOf(batch, answer, options)
}

/** Releases what the job has to release; answers why the rest was put off. */
export async function sendReleases(
  client: ManagerClient,
  job: MasterJob,
  options: { readonly retryForMs?: number },
): Promise<string | undefined> {
  while (job.hasReleases && job.jobEpoch !== undefined) {
    const keys = job.takeReleases(releaseKeysMax)
    const body = { jobEpoch: job.jobEpoch, keys: encodeKeys(keys) }
    const input = { params: { jobId: job.jobId }, query: {}, body }
    try {
      await client.call(managerApi.releasePartitions, input, options)
    } catch (error) {
      // A job that has to register anew leaves them out of its list: then they are released too.
      if (isShuffleError(error, 'JOB_UNKNOWN', 'SUPERSEDED')) continue
      job.releaseFailed(keys)
      return String(error)
    }
  }
  return undefined
}

/** Each host once, and for each producer which; nothing when none is known. */
function hostColumns(
  hosts: readonly (string | undefined)[],
): { readonly hosts: string[]; readonly hostOf: number[] } | Record<string, never> {
  const positions = new Map<string, number>()
  const hostOf = hosts.map((host) => {
    if (host === undefined) return -1
    const position = positions.get(host) ?? positions.size
    positions.set(host, position)
    return position
  })
  return positions.size === 0 ? {} : { hosts: [...positions.keys()], hostOf }
}

function descriptorsOf(
  { facts, requests }: AllocationBatch,
  answer: CallAnswer<typeof managerApi.allocatePartitions>,
  options: { readonly bufferSizeBytes: number; readonly codec: string },
): ShuffleDescriptor[] {
  const older = new Map(answer.older?.map((one) => [one.position, one]))
  const workers = answer.workers.map((worker) => ({
    workerId: parseWorkerId(worker.workerId),
    host: worker.host,
    port: worker.port,
    firstSubpartition: 0,
    lastSubpartition: facts.subpartitionCount - 1,
  }))
  return requests.map(({ key }, position) => {
    const holder = workers[answer.holders[position] ?? -1]
    const sequence = answer.sequences[position]
    if (holder === undefined || sequence === undefined) {
      throw new ShuffleError(
        'PROTOCOL',
        'the manager answered fewer allocations than were asked for',
      )
    }
    const { managerEpoch, jobEpoch } = older.get(position) ?? answer
    return {
      key,
      holders: [holder],
      allocation: { managerEpoch, jobEpoch, sequence },
      bufferSizeBytes: options.bufferSizeBytes,
      codec: options.codec,
      subpartitionCount: facts.subpartitionCount,
      isBroadcast: facts.isBroadcast,
      totalPartitions: facts.totalPartitions,
      ...(facts.expectedBytes === undefined ? {} : { expectedBytes: facts.expectedBytes }),
    }
  })
}
