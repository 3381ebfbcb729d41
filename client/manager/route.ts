// One call of the manager's HTTP contract: what the server registers and the client calls.

import type { Static, TSchema } from 'typebox'

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'

export interface Route<
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Body extends TSchema | undefined = TSchema | undefined,
  Answer extends TSchema = TSchema,
> {
  readonly method: Method
  /** With Fastify's `:name` for parameters. */
  readonly path: string
  readonly about: string
  readonly params: Params
  readonly query: Query
  /** Undefined for calls without a body. */
  readonly body: Body
  readonly answer: Answer
}

/** What a caller gives to {@link Route}; a call without a body gives undefined. */
export interface CallInput<R extends Route> {
  readonly params: Static<R['params']>
  readonly query: Static<R['query']>
  readonly body: R['body'] extends TSchema ? Static<R['body']> : undefined
}

export type CallAnswer<R extends Route> = Static<R['answer']>

export function defineRoute<
  const Params extends TSchema,
  const Query extends TSchema,
  const Body extends TSchema | undefined,
  const Answer extends TSchema,
>(route: Route<Params, Query, Body, Answer>): Route<Params, Query, Body, Answer> {
  return route
}

/** Path and query of a call, escaped. */
export function routeUrl(
  route: Pick<Route, 'path'>,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string | undefined>>,
): string {
  const path = route.path.replace(/:([A-Za-z]+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  )
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, value)
  }
  return search.size === 0 ? path : `${path}?${search.toString()}`
}
