import { expect, test } from 'vitest'

import { peakMemoryBytes } from '../../runtime/peak-memory.ts'

test('the peak is read from what the kernel says', () => {
  expect(peakMemoryBytes(() => 'VmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 5 kB\n')).toBe(
    2048 * 1024,
  )
})

test('without it, and for this process, it is some memory', () => {
  expect(peakMemoryBytes(() => '')).toBeGreaterThan(1024 * 1024)
  expect(peakMemoryBytes()).toBeGreaterThan(1024 * 1024)
})
