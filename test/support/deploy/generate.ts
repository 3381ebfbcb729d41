// The generated files of docs/ and helm/, by their paths from the root; run as a program it writes
// them (`npm run generate`). They are committed, and a test compares them with what this makes.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { projectRoot, readText } from '../source-tree.ts'
import { alertsDocument } from './alerts-reference.ts'
import { chartReadme } from './chart-readme.ts'
import { dashboards } from './dashboards.ts'
import { metricsDocument } from './metrics-reference.ts'
import { valuesSchema } from './values-schema.ts'

export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map([
    ['docs/metrics.md', metricsDocument()],
    ['docs/alerts.md', alertsDocument()],
    ['helm/values.schema.json', json(valuesSchema())],
    [
      'helm/README.md',
      chartReadme(readText('helm/README.template.md'), readText('helm/values.yaml')),
    ],
  ])
  for (const [name, dashboard] of Object.entries(dashboards())) {
    files.set(`helm/files/dashboards/${name}.json`, json(dashboard))
  }
  return files
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of generatedFiles()) {
    const file = join(projectRoot, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}
