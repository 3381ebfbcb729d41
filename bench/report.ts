// Results as a table of text (Markdown): one row for each series, figures as min / median / max.

import { gigabyte, mebibyte, megabyte, type Party, type Sample, type Series } from './series.ts'
import { spreadOf } from './statistics.ts'

const parties: readonly Party[] = ['worker', 'producers', 'consumers', 'manager']

export function tableOf(series: readonly Series[]): string {
  const lines = [
    '| | workload | MB/s | reference | ratio | CPU-s/GB: worker | producers | consumers | manager | worker peak, MiB | loop p99 over idle, ms |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ]
  for (const each of series) {
    if (each.samples.some(({ bytes }) => bytes > 0)) lines.push(...rowsOf(each))
  }
  return lines.join('\n')
}

/** Figures that only some workloads have, a line for each. */
export function figuresOf(series: readonly Series[]): string {
  const lines: string[] = []
  for (const each of series) {
    // A round may lack one: where nothing was listed, there is no size of a list.
    const names = new Set(each.samples.flatMap(({ figures }) => Object.keys(figures)))
    for (const name of names) {
      const values = each.samples.flatMap(({ figures }) => figures[name] ?? [])
      lines.push(
        `- ${each.workload}, ${each.name}: ${name} ${spreadText(values, digitsOf(values))}`,
      )
    }
    lines.push(...devicesOf(each))
  }
  return lines.join('\n')
}

/** The ratio to the reference of the same round. */
export function ratiosOf(series: Series, reference: string): number[] {
  return series.samples.map((sample) => rateOf(sample) / (sample.references[reference] ?? NaN))
}

export function referencesOf(series: Series): string[] {
  return Object.keys(series.samples[0]?.references ?? {})
}

/** MB/s. */
export function rateOf(sample: Pick<Sample, 'bytes' | 'seconds'>): number {
  return sample.bytes / megabyte / sample.seconds
}

function rowsOf(series: Series): string[] {
  const { samples } = series
  const cpu = parties.map((party) => {
    const values = samples.map((sample) => perGigabyte(sample, sample.cpuSeconds[party] ?? 0))
    return spreadOf(values).median.toFixed(2)
  })
  const peak = spreadText(
    samples.map(({ peakBytes }) => (peakBytes.worker ?? 0) / mebibyte),
    0,
  )
  const delay = spreadText(
    samples.map((sample) => sample.loopDelayP99Ms - sample.idleLoopDelayP99Ms),
    1,
  )
  const own = [series.workload, series.name, spreadText(samples.map(rateOf), 0)]
  const references = referencesOf(series)
  return (references.length === 0 ? [undefined] : references).map((reference, index) => {
    const against =
      reference === undefined
        ? ['', '']
        : [referenceText(series, reference), spreadText(ratiosOf(series, reference), 2)]
    const cells = index === 0 ? [...own, ...against, ...cpu, peak, delay] : ['', '', '', ...against]
    return `| ${cells.join(' | ')} |`
  })
}

function referenceText(series: Series, name: string): string {
  const rates = series.samples.map(({ references }) => references[name] ?? NaN)
  return `${name}: ${spreadText(rates, 0)}`
}

function devicesOf(series: Series): string[] {
  const { samples } = series
  if (!samples.some(({ bytes }) => bytes > 0)) return []
  const ofBytes = (of: (sample: Sample) => number) =>
    spreadText(
      samples.map((sample) => of(sample) / sample.bytes),
      2,
    )
  const perKind = (kind: string) =>
    spreadOf(
      samples.map((sample) => perGigabyte(sample, sample.diskOperations[kind] ?? 0)),
    ).median.toFixed(0)
  return [
    `- ${series.workload}, ${series.name}: reference ${series.referenceShape}; bytes at the disk per payload byte, by the worker: written ${ofBytes(({ worker }) => worker.writtenBytes)}, read ${ofBytes(({ worker }) => worker.readBytes)}; by the whole machine: written ${ofBytes(({ device }) => device.writtenBytes)}, read ${ofBytes(({ device }) => device.readBytes)}; the worker's writes per GB ${perKind('write')}, reads per GB ${perKind('read')}`,
  ]
}

function perGigabyte(sample: Sample, value: number): number {
  return (value / sample.bytes) * gigabyte
}

function spreadText(values: readonly number[], digits: number): string {
  const { min, median, max } = spreadOf(values)
  return `${min.toFixed(digits)} / **${median.toFixed(digits)}** / ${max.toFixed(digits)}`
}

function digitsOf(values: readonly number[]): number {
  const { median } = spreadOf(values)
  return median >= 100 ? 0 : 2
}
