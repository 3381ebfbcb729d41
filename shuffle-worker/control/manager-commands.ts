// Commands of the manager, done on the data store. A command comes again until it was seen, so all of
// them may be done twice.

import type { JobId, PartitionKey } from '../../client/common/ids.ts'
import type { WorkerCommand } from '../../client/manager/api-workers.ts'
import { decodeKeys } from '../../client/manager/key-columns.ts'
import type { JobKeyGroups, ServiceRecord } from '../../client/manager/schemas.ts'
import type { ControlledStore } from './controlled-store.ts'

/** Does what it knows; answers the types that it does not know. */
export function execute(
  commands: readonly WorkerCommand[],
  store: Pick<ControlledStore, 'release' | 'confirmReleased'>,
  setService: (record: ServiceRecord) => void,
): string[] {
  const unknown: string[] = []
  for (const command of commands) {
    switch (command.type) {
      case 'release':
        store.release(keysOf(command.jobs))
        break
      case 'confirm-released':
        store.confirmReleased(keysOf(command.jobs))
        break
      case 'service':
        setService(command.service)
        break
      default:
        unknown.push((command as { readonly type: string }).type)
    }
  }
  return unknown
}

function keysOf(jobs: readonly JobKeyGroups[]): PartitionKey[] {
  return jobs.flatMap(({ jobId, dataSets }) =>
    decodeKeys(dataSets).map((key) => ({ jobId: jobId as JobId, ...key })),
  )
}
