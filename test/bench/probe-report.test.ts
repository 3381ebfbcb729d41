import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  Probe,
  probeEnvironment,
  probeFileVariable,
  profileFileVariable,
} from '../../bench/probe-report.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

describe('the probe', () => {
  it('is asked by a signal and answers through its file', async () => {
    await withTemporaryDirectory(async (directory) => {
      const file = path.join(directory, 'probe')
      const onSignal = () => {
        const report = { phase: 1, loopDelayP99Ms: 2, loopDelayMaxMs: 3, heapUsedBytes: 4 }
        writeFileSync(file, JSON.stringify(report))
      }
      process.once('SIGUSR2', onSignal)
      const report = await new Probe(process.pid, file).next()
      expect(report).toMatchObject({ phase: 1, loopDelayP99Ms: 2 })
    })
  })

  it('profiles only where a directory is given', () => {
    expect(probeEnvironment('/p', undefined)).not.toHaveProperty(profileFileVariable)
    expect(probeEnvironment('/p', '/d')).toMatchObject({
      [probeFileVariable]: '/p',
      [profileFileVariable]: '/d',
    })
  })
})
