// The settings of a process that is none.

import type { LogLevel } from '../../client/common/log.ts'
import type { ProcessSettings } from '../../client/common/running-options.ts'

export class FakeSettings implements ProcessSettings {
  logLevel: LogLevel = 'info'
  readonly problems = [{ wallMs: 1, level: 'warn', message: 'm', fields: { a: 'b' } }] as const

  shownOptions() {
    return [{ name: 'port', value: '9700', source: 'default', isReloadable: false }]
  }

  reload() {
    const change = { name: 'log-level', before: 'info', after: 'debug' }
    return { changed: [change], needRestart: [] }
  }
}
