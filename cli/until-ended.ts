// A wait of a command that ends with the command: who presses Ctrl-C does not wait for a call's time-out.

import { ShuffleError } from '../client/index.ts'
import type { CommandContext } from './command.ts'

/** What `work` comes to, or CANCELLED as soon as the process is asked to end; `work` goes on then. */
export async function untilEnded<T>(
  work: Promise<T>,
  { signal }: Pick<CommandContext, 'signal'>,
): Promise<T> {
  let onAbort: () => void = () => undefined
  const ended = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(new ShuffleError('CANCELLED', 'the command was told to end'))
    }
  })
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, ended])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
