import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'

import { JoinedSignal } from '../../../client/common/joined-signal.ts'

const listeners = (controller: AbortController) =>
  getEventListeners(controller.signal, 'abort').length

describe('a joined signal', () => {
  test('aborts with the reason of the first that does', () => {
    const [one, other] = [new AbortController(), new AbortController()]
    const joined = new JoinedSignal(one.signal, other.signal)
    expect(joined.signal.aborted).toBe(false)
    other.abort('other')
    one.abort('one')
    expect(joined.signal.reason).toBe('other')
    expect([listeners(one), listeners(other)]).toEqual([0, 0])
  })

  test('of one that has aborted is aborted from the start', () => {
    const [one, other] = [new AbortController(), new AbortController()]
    other.abort('before')
    expect(new JoinedSignal(one.signal, other.signal).signal.reason).toBe('before')
    expect(listeners(one)).toBe(0)
  })

  test('leaves nothing in its sources once it is released', () => {
    const [one, other] = [new AbortController(), new AbortController()]
    const joined = new JoinedSignal(one.signal, other.signal)
    expect([listeners(one), listeners(other)]).toEqual([1, 1])
    joined.release()
    joined.release()
    expect([listeners(one), listeners(other)]).toEqual([0, 0])
    one.abort()
    expect(joined.signal.aborted).toBe(false)
  })
})
