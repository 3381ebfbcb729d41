// Real text that every machine has once the project is set up: sources and documents of the installed
// dependencies.

import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'

import { ShuffleError } from '../client/index.ts'

export interface CorpusLimits {
  /** Files are added until they have so many bytes. */
  readonly bytesWanted: number
  readonly filesMax: number
}

const textFile = /\.(md|txt|js|mjs|cjs|ts|mts|cts|json)$/
/** Bundles and tables of megabytes are no text that anybody wrote. */
const fileBytesMax = 2 * 1024 * 1024

/** The node_modules that holds the dependencies of the program in `start`. */
export function findNodeModules(start: string): string {
  for (let at = path.resolve(start); ; at = path.dirname(at)) {
    const found = path.basename(at) === 'node_modules' ? at : path.join(at, 'node_modules')
    if (existsSync(path.join(found, 'fastify'))) return found
    if (path.dirname(at) === at) {
      throw new ShuffleError('INVALID_ARGUMENT', `no node_modules with text above ${start}`)
    }
  }
}

/** Text files below `directory` in the order of their names, until there is enough. */
export async function gatherCorpus(directory: string, limits: CorpusLimits): Promise<string[]> {
  const files: string[] = []
  let bytes = 0
  const visit = async (folder: string): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true })
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (bytes >= limits.bytesWanted || files.length >= limits.filesMax) return
      const file = path.join(folder, entry.name)
      if (entry.isDirectory()) {
        if (entry.name !== '.cache') await visit(file)
      } else if (entry.isFile() && textFile.test(entry.name)) {
        const { size } = await stat(file)
        if (size > fileBytesMax) continue
        bytes += size
        files.push(file)
      }
    }
  }
  await visit(directory)
  return files
}
