// The calls about a running process: its options, its log. The manager's contract; a worker answers the
// same on its own HTTP port.

import { Type, type Static } from 'typebox'
import { defineRoute } from './route.ts'
import { Nothing, flag, text, u53 } from './schemas.ts'

const ShownOption = Type.Object({
  name: text('Name of the option'),
  value: Type.String({ description: 'Its value in effect; empty when it is not set' }),
  source: text('Where the value came from'),
  isReloadable: flag('Takes effect when the configuration is read again'),
})

const OptionChange = Type.Object({
  name: text('Name of the option'),
  before: Type.String({ description: 'Value in effect until now' }),
  after: Type.String({ description: 'Value in the sources' }),
})

const Level = Type.Union(
  [Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'), Type.Literal('error')],
  { description: 'Least severe lines that are written' },
)

export const ProcessDescription = Type.Object({
  role: text('manager or worker'),
  version: text('Version'),
  wallMs: u53('Clock of the machine'),
  logLevel: Level,
  facts: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
    description: 'Of the process: its Node, threads, limits, memory',
  }),
  options: Type.Array(ShownOption),
  problems: Type.Array(
    Type.Object({
      wallMs: u53('When'),
      level: Level,
      message: text('What'),
      fields: Type.Record(Type.String(), Type.String()),
    }),
    { description: 'The last warnings and errors that were logged, oldest first' },
  ),
})
export type ProcessDescription = Static<typeof ProcessDescription>

export const ReloadAnswer = Type.Object({
  changed: Type.Array(OptionChange, { description: 'In effect from now on' }),
  needRestart: Type.Array(OptionChange, { description: 'Take effect at the next start' }),
})
export type ReloadAnswer = Static<typeof ReloadAnswer>

export const describeProcess = defineRoute({
  method: 'GET',
  path: '/v1/process',
  about: 'The process: version, clock, limits, options in effect, last problems of its log.',
  params: Nothing,
  query: Nothing,
  body: undefined,
  answer: ProcessDescription,
})

export const reloadOptions = defineRoute({
  method: 'POST',
  path: '/v1/process/reload',
  about: 'Reads the configuration again; what can change while it runs takes effect at once.',
  params: Nothing,
  query: Nothing,
  body: Type.Object({}),
  answer: ReloadAnswer,
})

export const setLogLevel = defineRoute({
  method: 'PUT',
  path: '/v1/process/log-level',
  about: 'Changes the level of the log, until it is changed again or the process ends.',
  params: Nothing,
  query: Nothing,
  body: Type.Object({ level: Level }),
  answer: Type.Object({ level: Level }),
})
