// What `npm start` runs: set-up where it is needed, then the command in this same process, so that
// signals reach it.

import { setUp } from './set-up.mjs'

try {
  await setUp()
} catch (error) {
  process.stderr.write(`sluice set-up: ${error.message}\n`)
  process.exit(1)
}
// npm runs scripts in the package's directory; relative paths are the caller's.
if (process.env.INIT_CWD !== undefined) process.chdir(process.env.INIT_CWD)
await import('../dist/cli/main.js')
