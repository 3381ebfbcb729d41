#!/usr/bin/env node
// The entry of the `sluice` command: the real process around a command.

import { readFileSync } from 'node:fs'

import { commands } from './commands.ts'
import { watchNpm } from './npm-parent.ts'
import { runCommand } from './run-command.ts'

const controller = new AbortController()

const context = {
  environment: process.env,
  workingDirectory: process.cwd(),
  signal: controller.signal,
  isTerminal: process.stderr.isTTY,
  print: (text: string) => process.stdout.write(text),
  note: (text: string) => process.stderr.write(text),
  readFile: (path: string) => readFileSync(path, 'utf8'),
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    controller.abort(signal)
  })
}
// A reader that goes away (`sluice jobs | head`) is no error of ours.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)
watchNpm(process.env, () => {
  controller.abort('SIGTERM')
})

const argv = process.argv.slice(2)
process.exitCode = await runCommand({ argv, commands, version: version() }, context)
// What is still open, a keep-alive connection say, must not hold the process.
await flushed(process.stdout)
await flushed(process.stderr)
process.exit()

function version(): string {
  const isSource = import.meta.url.endsWith('.ts')
  const file = new URL(isSource ? '../package.json' : '../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else {
      stream.write('', () => {
        resolve()
      })
    }
  })
}
