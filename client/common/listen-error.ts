// What a service says when it can't have a port of its own: where it wanted to listen, and with which
// option it listens elsewhere. Used by manager and worker.

import { ShuffleError } from './errors.ts'
import type { Address } from './network.ts'

/**
 * Resolves as `listening` does; rejects with BUSY for a port that is taken, else with INVALID_ARGUMENT.
 * `options` are the names of those that say the address.
 */
export async function withListenAdvice<T>(
  listening: Promise<T>,
  { host, port }: Address,
  options: { readonly host: string; readonly port: string },
): Promise<T> {
  try {
    return await listening
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const where = `${host.includes(':') ? `[${host}]` : host}:${String(port)}`
    if (code === 'EADDRINUSE') {
      throw new ShuffleError(
        'BUSY',
        `${where} is in use: stop what listens there, or take another port with --${options.port} (0: any that is free)`,
        { cause: error, fields: { host, port } },
      )
    }
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `can't listen on ${where}: ${message}; choose an address of this machine with --${options.host}, a port that the user may take with --${options.port}`,
      { cause: error, fields: { host, port } },
    )
  }
}
