// The bench once, small: a workload of each kind of program in it runs to its end, and its results have
// the shape that the report is made of. What comes out of it here says nothing about speed.

import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import type { BenchResult } from '../../bench/series.ts'
import { projectRoot } from '../support/source-tree.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

const run = promisify(execFile)

it('runs its workloads, writes its results and its plots', async () => {
  if (process.platform !== 'linux') {
    process.stdout.write('not Linux: the bench was not run\n')
    return
  }
  await withTemporaryDirectory(async (directory) => {
    const output = path.join(directory, 'result.json')
    const plots = path.join(directory, 'plots')
    const { stdout } = await run(process.execPath, [
      path.join(projectRoot, 'dist', 'bench', 'main.js'),
      ...[
        '--only',
        'd,g,h',
        '--quick',
        '--rounds',
        '1',
        '--bytes',
        '4000000',
        '--jobs',
        '64',
        '--profile',
      ],
      ...['--directory', path.join(directory, 'data'), '--output', output, '--plots', plots],
    ])
    const result = JSON.parse(await readFile(output, 'utf8')) as BenchResult
    const letters = [...new Set(result.series.map(({ workload }) => workload))]
    expect(letters).toEqual(['d', 'g', 'h'])
    for (const { samples, name } of result.series) {
      expect(samples, name).toHaveLength(1)
      for (const sample of samples) {
        expect(sample.seconds, name).toBeGreaterThan(0)
        expect(sample.peakBytes.worker, name).toBeGreaterThan(0)
      }
    }
    expect(stdout).toContain(
      '| d | whole read by 8 consumers with a write by 8 producers beside it |',
    )
    expect(await readdir(plots)).toContain('workload-d.svg')
    const profiles = await readdir(`${output}.profiles`)
    expect(profiles.some((name) => name.endsWith('.cpuprofile'))).toBe(true)
  })
})
