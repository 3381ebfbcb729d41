// The worker's answers to the calls about a process (client/manager/api-settings.ts): its options, its
// log, what it runs on.

import type { FastifyInstance } from 'fastify'
import { ShuffleError } from '../../client/common/errors.ts'
import type { ProcessFacts } from '../../client/common/process-facts.ts'
import type { ProcessSettings } from '../../client/common/running-options.ts'
import {
  describeProcess,
  reloadOptions,
  setLogLevel,
  type ProcessDescription,
} from '../../client/manager/api-settings.ts'
import { logLevels } from '../../client/common/log.ts'

export interface SettingsPages {
  readonly version: string
  readonly wallMs: () => number
  /** Undefined in a worker that is embedded: its options are the embedder's affair. */
  readonly settings: ProcessSettings | undefined
  readonly facts: () => ProcessFacts
}

export function addSettingsPages(
  app: FastifyInstance,
  parts: SettingsPages,
  checkToken: (authorization: string | undefined) => void,
): void {
  app.get(describeProcess.path, (request): ProcessDescription => {
    checkToken(request.headers.authorization)
    const settings = settingsOf(parts)
    return {
      role: 'worker',
      version: parts.version,
      wallMs: parts.wallMs(),
      logLevel: settings.logLevel,
      facts: { ...parts.facts() },
      options: [...settings.shownOptions()],
      problems: settings.problems.map((one) => ({ ...one, fields: { ...one.fields } })),
    }
  })
  app.post(reloadOptions.path, (request) => {
    checkToken(request.headers.authorization)
    return settingsOf(parts).reload()
  })
  app.put(setLogLevel.path, (request) => {
    checkToken(request.headers.authorization)
    const { level } = (request.body ?? {}) as { readonly level?: unknown }
    const known = logLevels.find((one) => one === level)
    if (known === undefined) {
      throw new ShuffleError('INVALID_ARGUMENT', `level must be one of ${logLevels.join(', ')}`)
    }
    settingsOf(parts).logLevel = known
    return { level: known }
  })
}

function settingsOf({ settings }: SettingsPages): ProcessSettings {
  if (settings !== undefined) return settings
  throw new ShuffleError(
    'INVALID_ARGUMENT',
    'this worker is embedded in another process and has no options of its own to tell or change',
  )
}
