// `sluice why JOB`: what went wrong with a job, and where its time goes.

import { parseJobId, ShuffleError } from '../client/index.ts'
import { managerApi } from '../client/manager/api.ts'
import type { EventRecord } from '../client/manager/api-workers.ts'
import type { ManagerClient } from '../client/manager/manager-client.ts'
import { exitCodes } from './command.ts'
import { asJson, clusterCommandOptions, managerCommand, nothing } from './manager-command.ts'
import { describeWhy, whyReport } from './why-report.ts'

const pageEvents = 10_000
/** As many pages as the largest ring has. */
const pagesMax = 100

export const whyCommand = managerCommand({
  declaration: clusterCommandOptions,
  usage: 'sluice why JOB [options]',
  about:
    'Says what went wrong with a job: for each lost partition and each failed read or write which worker it was, when, what happened, who noticed and who was told; and where the time of its channels and tasks goes (of tasks when a process has two seconds of it to tell). Also of a job that has ended, as long as the manager has its events.',
  argumentNames: ['JOB'],
  run: async ({ client, values, context, args: [name = ''] }) => {
    const jobId = parseJobId(name)
    const { jobs } = await client.call(managerApi.listJobs, nothing)
    const job = jobs.find((one) => one.jobId === jobId)
    const { events, forgotten } = await allEvents(client)
    const report = whyReport(jobId, { job, events, forgotten })
    const isKnown = job !== undefined || events.some((event) => event['jobId'] === jobId)
    if (!isKnown) {
      throw new ShuffleError(
        'JOB_UNKNOWN',
        `the manager knows no job ${jobId}, and no event of one; \`sluice jobs\` lists them`,
        { fields: { jobId } },
      )
    }
    context.print(values.json ? asJson(report) : describeWhy(report))
    return exitCodes.success
  },
})

/** All that the manager has, oldest first. */
export async function allEvents(
  client: ManagerClient,
): Promise<{ readonly events: readonly EventRecord[]; readonly forgotten: number }> {
  const events: EventRecord[] = []
  let forgotten = 0
  let after = 0
  for (let page = 0; page < pagesMax; page++) {
    const answer = await client.call(managerApi.listEvents, {
      params: {},
      query: { after: String(after), limit: String(pageEvents) },
      body: undefined,
    })
    if (page === 0) ({ forgotten } = answer)
    events.push(...answer.events)
    const last = answer.events.at(-1)
    if (last === undefined || answer.events.length < pageEvents) break
    after = last.number
  }
  return { events, forgotten }
}
