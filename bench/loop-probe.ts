// Loaded into a process that is measured, before its own code (`--import`). Each SIGUSR2 ends a
// phase: it writes what the phase was like into the file of its environment, and begins the next.

import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { basename } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { probeFileVariable, profileFileVariable, type ProbeReport } from './probe-report.ts'

const resolutionMs = 10
const path = process.env[probeFileVariable]
const profilePath = process.env[profileFileVariable]
// Children of this process are not measured.
Reflect.deleteProperty(process.env, probeFileVariable)

if (path !== undefined) watch(path)

function watch(reportPath: string): void {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  const session = profilePath === undefined ? undefined : new Session()
  session?.connect()
  session?.post('Profiler.enable')
  session?.post('Profiler.start')
  let phase = 0
  process.on('SIGUSR2', () => {
    phase += 1
    const report: ProbeReport = {
      phase,
      loopDelayP99Ms: delay.percentile(99) / 1e6,
      loopDelayMaxMs: delay.max / 1e6,
      heapUsedBytes: process.memoryUsage().heapUsed,
    }
    delay.reset()
    if (session !== undefined && profilePath !== undefined) nextProfile(session, profilePath, phase)
    writeFileSync(`${reportPath}.new`, JSON.stringify(report))
    renameSync(`${reportPath}.new`, reportPath)
  })
  // Nobody asks the processes of the load: theirs is one phase.
  process.once('exit', () => {
    if (session !== undefined && profilePath !== undefined) {
      nextProfile(session, profilePath, phase + 1)
    }
  })

  function nextProfile(of: Session, directory: string, ended: number): void {
    of.post('Profiler.stop', (error, result) => {
      if (error !== null) return
      const name = `${basename(reportPath, '.probe')}-${String(process.pid)}-${String(ended)}`
      writeFileSync(`${directory}/${name}.cpuprofile`, JSON.stringify(result.profile))
    })
    of.post('Profiler.start')
  }
}
