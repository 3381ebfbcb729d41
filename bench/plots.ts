// Plots of the results as SVG: for each workload the ratios of its series to their references, every
// round a dot, the median a line.

import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ratiosOf, referencesOf } from './report.ts'
import type { BenchResult, Series } from './series.ts'
import { spreadOf } from './statistics.ts'

const width = 860
const rowHeight = 26
const labelWidth = 470
const top = 40
const ratioMax = 1.5

export async function drawPlots(result: BenchResult, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const letters = [...new Set(result.series.map(({ workload }) => workload))]
  for (const letter of letters) {
    const rows = rowsOf(result.series.filter(({ workload }) => workload === letter))
    if (rows.length === 0) continue
    await writeFile(path.join(directory, `workload-${letter}.svg`), ratioPlot(letter, rows))
  }
}

interface Row {
  readonly label: string
  readonly ratios: readonly number[]
}

function rowsOf(series: readonly Series[]): Row[] {
  return series.flatMap((each) =>
    referencesOf(each).map((reference) => ({
      label: `${each.name} / ${reference}`,
      ratios: ratiosOf(each, reference),
    })),
  )
}

export function ratioPlot(letter: string, rows: readonly Row[]): string {
  const height = top + rows.length * rowHeight + 30
  const x = (ratio: number) =>
    labelWidth + (Math.min(ratio, ratioMax) / ratioMax) * (width - labelWidth - 20)
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(width)} ${String(height)}" font-family="sans-serif" font-size="12">`,
    `<rect width="${String(width)}" height="${String(height)}" fill="white"/>`,
    `<text x="10" y="22" font-size="14">Workload ${letter}: rate over the reference of the same round</text>`,
  ]
  for (const tick of [0, 0.25, 0.5, 0.75, 0.85, 1, 1.25, 1.5]) {
    const at = x(tick).toFixed(1)
    const color = tick === 1 ? '#888' : '#ddd'
    parts.push(
      `<line x1="${at}" x2="${at}" y1="${String(top - 8)}" y2="${String(height - 24)}" stroke="${color}"/>`,
      `<text x="${at}" y="${String(height - 8)}" text-anchor="middle" fill="#555">${String(tick)}</text>`,
    )
  }
  for (const [index, row] of rows.entries()) parts.push(...rowParts(row, { index, x }))
  return `${parts.join('\n')}\n</svg>\n`
}

function rowParts(
  row: Row,
  { index, x }: { readonly index: number; readonly x: (ratio: number) => number },
): string[] {
  const y = top + index * rowHeight + rowHeight / 2
  const median = spreadOf(row.ratios).median
  const at = x(median).toFixed(1)
  return [
    `<text x="10" y="${String(y + 4)}">${escapeText(row.label)}</text>`,
    ...row.ratios.map(
      (ratio) =>
        `<circle cx="${x(ratio).toFixed(1)}" cy="${String(y)}" r="3.5" fill="#36c" fill-opacity="0.5"/>`,
    ),
    `<line x1="${at}" x2="${at}" y1="${String(y - 9)}" y2="${String(y + 9)}" stroke="#c33" stroke-width="2"/>`,
    `<text x="${String(labelWidth - 8)}" y="${String(y + 4)}" text-anchor="end" fill="#c33">${median.toFixed(2)}</text>`,
  ]
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
