// The secret of a cluster, read from the file that an option names.

import { ShuffleError } from '../client/index.ts'
import type { CommandContext } from './command.ts'

export function readToken(
  path: string | undefined,
  context: Pick<CommandContext, 'readFile'>,
): string | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = context.readFile(path).trim()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ShuffleError('INVALID_ARGUMENT', `--token-file ${path} can't be read: ${reason}`, {
      cause: error,
    })
  }
  if (text === '') throw new ShuffleError('INVALID_ARGUMENT', `--token-file ${path} is empty`)
  return text
}
