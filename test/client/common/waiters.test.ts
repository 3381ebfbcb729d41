import { describe, expect, test } from 'vitest'
import { ShuffleError } from '../../../client/common/errors.ts'
import { cancelledError, WaiterRegister } from '../../../client/common/waiters.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

describe('a waiter', () => {
  test('has the first outcome and no other', async () => {
    const register = new WaiterRegister({ clock: new VirtualClock() })
    const waiter = register.wait<number>({ name: 'a number', timeoutMs: 10 })
    waiter.resolve(1)
    waiter.resolve(2)
    waiter.reject(new Error('late'))
    expect(await waiter.promise).toBe(1)
    expect(waiter.isSettled).toBe(true)
    expect(register.count).toBe(0)
  })

  test('ends with its code and fields when its deadline passes', async () => {
    const clock = new VirtualClock()
    const register = new WaiterRegister({ clock })
    const waiter = register.wait({
      name: 'credit',
      timeoutMs: 100,
      timeoutCode: 'WRITE_INTERRUPTED',
      fields: { regionIndex: 3 },
    })
    await clock.advance(99)
    expect(waiter.isSettled).toBe(false)
    await clock.advance(1)
    await expect(waiter.promise).rejects.toMatchObject({
      code: 'WRITE_INTERRUPTED',
      fields: { regionIndex: 3, waitedMs: 100 },
    })
    expect(clock.timerCount).toBe(0)
  })

  test('is BUSY by default', async () => {
    const clock = new VirtualClock()
    const waiter = new WaiterRegister({ clock }).wait({ name: 'memory', timeoutMs: 5 })
    await clock.advance(5)
    await expect(waiter.promise).rejects.toMatchObject({ code: 'BUSY' })
  })

  test('progress starts the deadline anew', async () => {
    const clock = new VirtualClock()
    const waiter = new WaiterRegister({ clock }).wait({ name: 'frames', timeoutMs: 100 })
    for (let time = 0; time < 10; time += 1) {
      await clock.advance(90)
      waiter.progress()
    }
    await clock.advance(99)
    expect(waiter.isSettled).toBe(false)
    await clock.advance(1)
    expect(waiter.isSettled).toBe(true)
  })

  test('without a deadline sets no timer', async () => {
    const clock = new VirtualClock()
    const register = new WaiterRegister({ clock })
    const waiter = register.wait({ name: 'anything', timeoutMs: Infinity })
    expect(clock.timerCount).toBe(0)
    await clock.advance(1_000_000)
    expect(register.list()).toEqual([
      { name: 'anything', ageMs: 1_000_000, remainingMs: Infinity, fields: {} },
    ])
    waiter.resolve(undefined)
  })

  test('a signal cancels it, also one that was aborted before', async () => {
    const clock = new VirtualClock()
    const register = new WaiterRegister({ clock })
    const abort = new AbortController()
    const options = { name: 'data', timeoutMs: 10, signal: abort.signal, fields: { a: 1 } }
    const before = register.wait(options)
    abort.abort(new Error('task cancelled'))
    const after = register.wait(options)
    for (const waiter of [before, after]) {
      await expect(waiter.promise).rejects.toMatchObject({ code: 'CANCELLED', fields: { a: 1 } })
    }
    expect(register.count).toBe(0)
    expect(clock.timerCount).toBe(0)
  })

  test('that nobody awaits may fail without ending the process', async () => {
    const clock = new VirtualClock()
    new WaiterRegister({ clock }).wait({ name: 'nothing', timeoutMs: 1 })
    await clock.advance(2)
  })
})

test('the register lists what is waited for, oldest first', async () => {
  const clock = new VirtualClock()
  const register = new WaiterRegister({ clock })
  register.wait({ name: 'first', timeoutMs: 100, fields: { id: 1 } })
  await clock.advance(30)
  register.wait({ name: 'second', timeoutMs: 50 })
  await clock.advance(10)
  expect(register.list()).toEqual([
    { name: 'first', ageMs: 40, remainingMs: 60, fields: { id: 1 } },
    { name: 'second', ageMs: 10, remainingMs: 40, fields: {} },
  ])
})

test('a ShuffleError as the reason of an abort passes unchanged', () => {
  const reason = new ShuffleError('SUPERSEDED', 'another took over')
  expect(cancelledError('x', reason)).toBe(reason)
})
