// What the HTTP port of a worker needs, without a worker.

import { Counter, Registry } from 'prom-client'
import { silentLogger } from '../../../../client/common/log.ts'
import type { HttpServerParts } from '../../../../shuffle-worker/http/http-server.ts'
import { VirtualWorld } from '../../../support/virtual-world.ts'

export function workerHttpParts(more: Partial<HttpServerParts> = {}): HttpServerParts {
  const registry = new Registry()
  new Counter({ name: 'some_total', help: 'Some.', registers: [registry] })
  return {
    clock: new VirtualWorld().clock,
    registry,
    logger: silentLogger,
    token: undefined,
    metricsNeedToken: false,
    metricsAllow: () => [],
    process: { version: 'test', wallMs: () => 5, settings: undefined, facts: () => ({}) },
    notReady: () => undefined,
    status: () => ({ workerId: 'worker-1' }),
    waiters: () => [],
    partitions: () => Array.from({ length: 1500 }, (_, index) => ({ index })),
    ...more,
  }
}
