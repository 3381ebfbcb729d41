// The committed golden vectors, as a client of another language reads them.

import { readFileSync } from 'node:fs'

export interface WireJson {
  readonly messages: readonly {
    readonly name: string
    readonly id: number
    readonly vectors: readonly {
      readonly example: 'smallest' | 'largest'
      readonly channelId: number
      readonly fields: Readonly<Record<string, unknown>>
      readonly body: string
      readonly frame: string
    }[]
  }[]
  readonly entries: readonly {
    readonly about: string
    readonly key: {
      readonly jobId: string
      readonly dataSetId: string
      readonly partitionIndex: number
      readonly attemptId: string
    }
    readonly regionIndex: number
    readonly subpartition: number
    readonly position: number
    readonly flags: number
    readonly type: number
    readonly payload: string
    readonly checksum: number
    readonly bytes: string
  }[]
  readonly readData: {
    readonly segments: readonly Readonly<Record<string, number>>[]
    readonly body: string
  }
  readonly partitionLists: readonly {
    readonly entries: readonly Readonly<Record<string, unknown>>[]
    readonly bodies: readonly string[]
  }[]
  readonly byteCounts: readonly {
    readonly counts: readonly string[]
    readonly bodies: readonly string[]
  }[]
  readonly authentication: readonly Readonly<
    Record<'token' | 'challenge' | 'clusterId' | 'workerId' | 'answer', string>
  >[]
  readonly tolerated: {
    readonly streams: readonly {
      readonly about: string
      readonly phase: string
      readonly bytes: string
      readonly messages: readonly string[]
    }[]
  }
  readonly refused: {
    readonly streams: readonly {
      readonly about: string
      readonly phase: string
      readonly bytes: string
      readonly code: string
    }[]
  }
  readonly refusedEntries: readonly (Pick<
    WireJson['entries'][number],
    'about' | 'key' | 'regionIndex' | 'position' | 'bytes'
  > & { readonly code: string })[]
  readonly refusedPartitionLists: readonly {
    readonly about: string
    readonly partitionCount: number
    readonly body: string
  }[]
}

export const wireJsonFile = JSON.parse(
  readFileSync(new URL('../../../../client/protocol/wire.json', import.meta.url), 'utf8'),
) as WireJson
