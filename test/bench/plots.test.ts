import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { drawPlots, ratioPlot } from '../../bench/plots.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'
import { sample, series } from './sample-series.ts'

describe('plots', () => {
  it('each round is a dot and the median a line with its value', () => {
    const plot = ratioPlot('a', [{ label: 'x < y', ratios: [0.5, 0.8, 1] }])
    expect(plot.match(/<circle/g)).toHaveLength(3)
    expect(plot).toContain('>0.80</text>')
    expect(plot).toContain('x &lt; y')
  })

  it('a workload with references has a file, one without has none', async () => {
    await withTemporaryDirectory(async (directory) => {
      const bare = series({ workload: 'g', samples: [sample(1, { references: {} })] })
      const result = { startedAt: '', machine: {}, options: {}, series: [series(), bare] }
      await drawPlots(result, directory)
      expect(await readdir(directory)).toEqual(['workload-a.svg'])
      const text = await readFile(path.join(directory, 'workload-a.svg'), 'utf8')
      expect(text).toMatch(/^<svg [\s\S]*<\/svg>\n$/)
    })
  })
})
