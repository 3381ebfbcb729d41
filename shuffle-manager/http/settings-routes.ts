// Calls about the process itself: its options, its log, what it runs on.

import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../client/common/clock.ts'
import { ShuffleError } from '../../client/common/errors.ts'
import type { ProcessFacts } from '../../client/common/process-facts.ts'
import type { ProcessSettings } from '../../client/common/running-options.ts'
import { managerApi } from '../../client/manager/api.ts'
import { registerCall } from './route-registration.ts'

export interface SettingsParts {
  readonly clock: Clock
  readonly version: string
  /** Undefined in a manager that is embedded: its options are the embedder's affair. */
  readonly settings: ProcessSettings | undefined
  readonly facts: () => ProcessFacts
}

export function registerSettingsRoutes(app: FastifyInstance, parts: SettingsParts): void {
  const settings = (): ProcessSettings => {
    if (parts.settings !== undefined) return parts.settings
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      'this manager is embedded in another process and has no options of its own to tell or change',
    )
  }

  registerCall(app, { name: 'describeProcess', route: managerApi.describeProcess }, () => {
    const { logLevel, problems } = settings()
    return {
      role: 'manager',
      version: parts.version,
      wallMs: parts.clock.wallMs(),
      logLevel,
      facts: { ...parts.facts() },
      options: [...settings().shownOptions()],
      problems: problems.map((problem) => ({ ...problem, fields: { ...problem.fields } })),
    }
  })

  registerCall(app, { name: 'reloadOptions', route: managerApi.reloadOptions }, () => {
    const { changed, needRestart } = settings().reload()
    return { changed: [...changed], needRestart: [...needRestart] }
  })

  registerCall(app, { name: 'setLogLevel', route: managerApi.setLogLevel }, ({ body }) => {
    settings().logLevel = body.level
    return { level: body.level }
  })
}
