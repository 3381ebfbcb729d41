import { expect, test } from 'vitest'
import { untilEnded } from '../../cli/until-ended.ts'
import { deferred } from '../support/deferred.ts'

test('a wait comes to what its work comes to', async () => {
  const { signal } = new AbortController()
  expect(await untilEnded(Promise.resolve(7), { signal })).toBe(7)
  await expect(untilEnded(Promise.reject(new Error('no')), { signal })).rejects.toThrow('no')
})

test('a wait is over when the process is asked to end, before or meanwhile; work that fails then is no fault', async () => {
  const controller = new AbortController()
  const work = deferred<never>()
  const waiting = untilEnded(work.promise, controller)
  controller.abort('SIGINT')
  await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
  await expect(untilEnded(work.promise, controller)).rejects.toMatchObject({ code: 'CANCELLED' })
  work.reject(new Error('too late'))
})
