// Checks of the files that the user names for a job, before anything is started.

import { access, constants, stat } from 'node:fs/promises'
import path from 'node:path'

import { ShuffleError } from '../../client/index.ts'
import type { InputFile } from '../input/input-split.ts'

/** The files with their sizes; parts of them are read at any place, so only regular files will do. */
export async function inspectInputs(paths: readonly string[]): Promise<InputFile[]> {
  return await Promise.all(
    paths.map(async (file) => {
      const status = await stat(file).catch((error: unknown) => {
        throw unusable(`the input ${file} can't be read`, error)
      })
      if (!status.isFile()) {
        throw unusable(`the input ${file} is not a regular file`, undefined)
      }
      await access(file, constants.R_OK).catch((error: unknown) => {
        throw unusable(`the input ${file} can't be read`, error)
      })
      return { path: file, sizeBytes: status.size }
    }),
  )
}

/** Refuses an output whose directory is not there or not writable, or that is a directory. */
export async function checkOutput(output: string): Promise<void> {
  const status = await stat(output).catch(() => undefined)
  if (status?.isDirectory() === true) {
    throw unusable(`the output ${output} is a directory`, undefined)
  }
  const directory = path.dirname(output)
  await access(directory, constants.W_OK).catch((error: unknown) => {
    throw unusable(`no file can be made in ${directory} for the output`, error)
  })
}

function unusable(what: string, cause: unknown): ShuffleError {
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  return new ShuffleError('INVALID_ARGUMENT', `${what}${reason}`, { cause })
}
