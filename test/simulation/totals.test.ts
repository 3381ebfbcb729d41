import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readReports, sumLines, writeReport, type PartReport } from './totals.ts'

function partOf(first: number, facts: Partial<PartReport> = {}): PartReport {
  return {
    first,
    doneCount: 10,
    failedCount: 0,
    minutes: 0.5,
    processorSeconds: 1,
    sums: {
      jobs: 30,
      records: 30_000,
      partitions: 50,
      messages: 4_000,
      faultsHit: 40,
      faultsAfterCommit: 20,
      virtualMs: 1,
    },
    coverage: { faults: [['link-cut', 3]], pairs: [], errors: [['BUSY', 1]], messages: [] },
    failures: [],
    ...facts,
  }
}

test('parts that were kept as files sum up to one print, failed seeds by name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-totals-'))
  try {
    const later = partOf(500, {
      doneCount: 30,
      failedCount: 1,
      sums: { ...partOf(0).sums, jobs: 70 },
      failures: [{ seed: 507, findings: ['jobs hang'] }],
    })
    const paths = [join(folder, 'b.json'), join(folder, 'a.json')]
    writeReport(paths[0]!, later)
    writeReport(paths[1]!, partOf(100))
    const lines = [...sumLines(await readReports(paths))]
    expect(lines.slice(0, 4)).toEqual([
      '10 seeds from 100 on, 0 failed, 20 a minute, 0.100 processor seconds each',
      '30 seeds from 500 on, 1 failed, 60 a minute, 0.033 processor seconds each',
      '  seed 507: jobs hang',
      '40 seeds in 2 parts, 1 failed, 40 a minute, 0.050 processor seconds each',
    ])
    expect(lines[4]).toContain('on average: jobs 2.50, records 1500.00, partitions 2.50')
    expect(lines.filter((line) => line.startsWith('  less than'))).toEqual([
      '  less than 2000 records a seed',
      '  less than 3 partitions a seed',
      '  less than 3 faultsHit a seed',
    ])
    expect(lines.find((line) => line.startsWith('faults: '))).toContain('link-cut 6')
    expect(lines.at(-2)).toContain('faults never reached: link-cut-at-byte')
    expect(lines.at(-1)).not.toContain('BUSY')
  } finally {
    await rm(folder, { recursive: true })
  }
})
