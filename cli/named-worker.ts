// The worker that a person means: by its id, the beginning of it, or the address that `sluice workers`
// shows.

import { ShuffleError } from '../client/index.ts'
import { didYouMean } from '../client/common/near-miss.ts'
import { managerApi } from '../client/manager/api.ts'
import type { WorkerSummary } from '../client/manager/api-workers.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import { nothing } from './manager-command.ts'

/** NO_WORKER when it is none, INVALID_ARGUMENT when it is several. */
export async function namedWorker(client: ManagerClient, name: string): Promise<WorkerSummary> {
  const { workers } = await client.call(managerApi.listWorkers, nothing)
  return chooseWorker(workers, name)
}

export function chooseWorker(workers: readonly WorkerSummary[], name: string): WorkerSummary {
  const exact = workers.find(
    ({ workerId, host, port }) => workerId === name || `${host}:${port}` === name,
  )
  if (exact !== undefined) return exact
  const found = workers.filter(({ workerId }) => workerId.startsWith(name))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  if (found.length > 1) {
    const ids = listed(found.map(({ workerId }) => workerId))
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `${name} is the beginning of ${found.length} workers: ${ids}; give more of the name`,
      { fields: { worker: name } },
    )
  }
  const ids = workers.map(({ workerId }) => workerId)
  throw new ShuffleError(
    'NO_WORKER',
    `the manager knows no worker ${name}${didYouMean(name, ids)}; \`sluice workers\` lists them`,
    { fields: { worker: name } },
  )
}

/** The first few. */
function listed(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ')
  return names.length > 5 ? `${shown}, …` : shown
}
