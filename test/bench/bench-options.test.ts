import { describe, expect, it } from 'vitest'
import { parseBenchOptions, usage, workloadLetters } from '../../bench/bench-options.ts'

describe('bench options', () => {
  it('run everything in five rounds unless told otherwise', () => {
    const options = parseBenchOptions([])
    expect(options.only).toEqual(workloadLetters)
    expect(options).toMatchObject({ rounds: 5, isQuick: false, isProfiled: false })
  })

  it('a quick run has less of everything', () => {
    const [quick, full] = [parseBenchOptions(['--quick']), parseBenchOptions([])]
    expect(quick.rounds).toBeLessThan(full.rounds)
    expect(quick.bytes).toBeLessThan(full.bytes)
    expect(parseBenchOptions(['--quick', '--rounds', '7']).rounds).toBe(7)
  })

  it('takes letters', () => {
    expect(parseBenchOptions(['--only', 'a, c']).only).toEqual(['a', 'c'])
    expect(() => parseBenchOptions(['--only', 'a,z'])).toThrow('"z"')
  })

  it('refuses what it does not understand', () => {
    expect(() => parseBenchOptions(['--rounds', '0'])).toThrow('--rounds')
    expect(() => parseBenchOptions(['--bytes', '1.5'])).toThrow('--bytes')
    expect(() => parseBenchOptions(['--mode', 'fast'])).toThrow('direct or buffered')
    expect(() => parseBenchOptions(['--unknown'])).toThrow('--unknown')
  })

  it('names each option in its help', () => {
    for (const name of [
      'quick',
      'only',
      'rounds',
      'bytes',
      'mode',
      'memory',
      'profile',
      'output',
    ]) {
      expect(usage).toContain(`--${name}`)
    }
  })
})
