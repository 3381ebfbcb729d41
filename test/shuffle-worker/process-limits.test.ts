import { describe, expect, it } from 'vitest'
import {
  checkDescriptors,
  threadPoolSize,
  threadsNeeded,
} from '../../shuffle-worker/process-limits.ts'

const needs = { connectionsMax: 100, openWritesMax: 50, openFilesMax: 50 }
const limits = (text: string) =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${text}                20000                files\n`

describe('process limits', () => {
  it('refuses too few file descriptors, saying how many it may need and how to get there', () => {
    expect(() => {
      checkDescriptors(limits('200'), needs)
    }).toThrow(/520 file descriptors.*ulimit -n 520.*open-files-max|520.*connections-max/)
  })

  it('passes when there are enough, or nobody knows', () => {
    for (const text of [limits('520'), limits('unlimited'), '']) checkDescriptors(text, needs)
  })

  it('knows the size of the thread pool and what the disks need of it', () => {
    expect(threadPoolSize({})).toBe(4)
    expect(threadPoolSize({ UV_THREADPOOL_SIZE: '13' })).toBe(13)
    expect(threadPoolSize({ UV_THREADPOOL_SIZE: 'many' })).toBe(4)
    expect(threadPoolSize({ UV_THREADPOOL_SIZE: '5000' })).toBe(1024)
    expect(threadsNeeded(9)).toBe(13)
  })
})
