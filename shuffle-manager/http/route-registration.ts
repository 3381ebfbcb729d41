// Ties a call of the contract to its handler: Fastify validates by the same schemas that make the
// types and the OpenAPI document.

import type {} from '@fastify/swagger'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { CallAnswer, CallInput, Route } from '../../client/manager/route.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the call, for the metrics. */
    readonly call?: string
  }
}

/** A Buffer is an answer that is already JSON. */
export type CallHandler<R extends Route> = (
  input: CallInput<R>,
) => CallAnswer<R> | Buffer | Promise<CallAnswer<R>>

export function registerCall<R extends Route>(
  app: FastifyInstance,
  named: { readonly name: string; readonly route: R },
  handler: CallHandler<R>,
): void {
  const { name, route } = named
  app.route({
    method: route.method,
    url: route.path,
    config: { call: name },
    schema: {
      operationId: name,
      summary: route.about,
      params: route.params,
      querystring: route.query,
      ...(route.body === undefined ? {} : { body: route.body }),
      response: { 200: route.answer },
    },
    handler: async (request: FastifyRequest, reply) => {
      const answer = await handler({
        params: request.params,
        query: request.query,
        body: request.body,
      } as CallInput<R>)
      if (Buffer.isBuffer(answer)) void reply.type('application/json; charset=utf-8')
      return reply.send(answer)
    },
  })
}

/** A query's number; the schema has seen to its form. */
export function numberOf(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : Number(text)
}
