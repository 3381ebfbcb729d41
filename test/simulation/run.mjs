// `npm run simulate -- ARGUMENTS`: puts the simulator into one file of plain JavaScript, which runs half
// as fast again as the sources do, and runs it.

import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))
// Within the project, so that it finds the packages.
const bundle = join(here, `../../node_modules/.cache/sluice/simulate-${String(process.pid)}.mjs`)

await build({
  entryPoints: [join(here, 'simulate.ts')],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  logLevel: 'error',
})
const flags = ['--max-semi-space-size=64', '--single-threaded-gc']
const child = spawn(process.execPath, [...flags, bundle, ...process.argv.slice(2)], {
  stdio: 'inherit',
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', async (code, signal) => {
  const { rm } = await import('node:fs/promises')
  await rm(bundle, { force: true })
  process.exitCode = code ?? (signal === null ? 1 : 128)
})
