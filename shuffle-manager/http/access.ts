// Who may call: the right cluster and, if there is one, the cluster's token. Health is open to all.

import { createHash, timingSafeEqual } from 'node:crypto'
import { ShuffleError } from '../../client/common/errors.ts'
import { headers } from '../../client/manager/schemas.ts'

export interface AccessRules {
  readonly clusterId: string
  readonly token: string | undefined
  readonly metricsNeedToken: boolean
}

const openPaths = new Set(['/healthz', '/readyz'])

/** Throws UNAUTHENTICATED saying what was wrong. */
export function checkAccess(
  rules: AccessRules,
  request: {
    readonly path: string
    readonly header: (name: string) => string | undefined
  },
): void {
  if (openPaths.has(request.path)) return
  const cluster = request.header(headers.cluster)
  if (cluster !== undefined && cluster !== rules.clusterId) {
    throw new ShuffleError(
      'UNAUTHENTICATED',
      `this is the manager of cluster ${rules.clusterId}, not of ${cluster}; check the manager's URL and the cluster id`,
      { fields: { clusterId: rules.clusterId } },
    )
  }
  if (rules.token === undefined) return
  if (request.path === '/metrics' && !rules.metricsNeedToken) return
  const given = /^Bearer (.+)$/i.exec(request.header('authorization') ?? '')?.[1]
  if (given === undefined) {
    throw new ShuffleError(
      'UNAUTHENTICATED',
      "the call needs the cluster's token as `Authorization: Bearer …`; set --token-file",
    )
  }
  if (!isSame(given, rules.token)) {
    throw new ShuffleError(
      'UNAUTHENTICATED',
      "the token is not the cluster's; check --token-file on both sides",
    )
  }
}

/** In a time that tells nothing of where they differ, nor of the length. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
