import { afterEach, beforeEach, expect, test } from 'vitest'
import { whyCommand } from '../../cli/why-command.ts'
import { commandContext } from '../support/command-context.ts'
import { HttpAnswers } from '../support/http-answers.ts'

const page = (after: number) => `GET /v1/events?after=${after}&limit=10000`
let http: HttpAnswers
beforeEach(async () => {
  const events = Array.from({ length: 10_000 }, (_, index) => ({
    number: index + 1,
    wallMs: 1,
    type: 'job-registered',
    jobId: 'other',
  }))
  http = await HttpAnswers.start({
    'GET /v1/jobs': { jobs: [] },
    [page(0)]: { events, forgotten: 3 },
    [page(10_000)]: {
      events: [{ number: 10_001, wallMs: 1, type: 'job-deleted', jobId: 'mine' }],
      forgotten: 0,
    },
  })
})
afterEach(() => {
  http.close()
})

test('all pages of the events are read', async () => {
  const context = commandContext()
  expect(await whyCommand.run(['mine', '--json', '--manager', http.url], context)).toBe(0)
  expect(JSON.parse(context.printed.join(''))).toMatchObject({
    jobId: 'mine',
    jobEvents: [{ type: 'job-deleted' }],
    forgottenEvents: 3,
  })
})

test('a job that was never heard of is an error by name', async () => {
  await expect(whyCommand.run(['nobody', '--manager', http.url], commandContext())).rejects.toThrow(
    /no job nobody, and no event of one/,
  )
})
