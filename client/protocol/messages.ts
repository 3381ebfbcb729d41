// Every message of the data plane. They are declared, once each, in connection-messages.ts,
// write-messages.ts and read-messages.ts: read these first. The frame around them is in frame.ts, the
// entries inside data bodies in entry.ts, the rules of order and credit in WIRE.md, which is made
// from here (`npm run generate`).

import type { FieldValues, MessageDeclaration } from './define-message.ts'
import {
  AddCredit,
  Authenticate,
  Authenticated,
  ChannelClosed,
  CloseChannel,
  ErrorMessage,
  GoAway,
  Hello,
  HelloAck,
  Ping,
  Pong,
} from './connection-messages.ts'
import {
  AddPartitions,
  Backlog,
  Describe,
  Described,
  DropPartition,
  OpenRead,
  PartitionFailed,
  PartitionFinish,
  ReadData,
  ReadEnd,
  ReadFinish,
  ReadOpened,
} from './read-messages.ts'
import {
  OpenWrite,
  RegionFinish,
  RegionStart,
  WriteCommitted,
  WriteData,
  WriteFinish,
  WriteOpened,
} from './write-messages.ts'

/** First field of Hello and HelloAck: "SLUI". Whoever sends something else speaks another protocol. */
export const protocolMagic = 0x534c_5549

/** The oldest and newest version that this code speaks. */
export const protocolVersions = { min: 1, max: 1 } as const

/** Feature bits of Hello; a side uses a feature only when both have set its bit. None yet. */
export const protocolFeatures = {} as const satisfies Record<string, bigint>

/** AddCredit on a read channel names no region. */
export const noRegion = 0xffff_ffff

/** All messages, by name. */
export const messages = {
  Hello,
  HelloAck,
  Authenticate,
  Authenticated,
  Ping,
  Pong,
  GoAway,
  Error: ErrorMessage,
  CloseChannel,
  ChannelClosed,
  AddCredit,
  OpenWrite,
  WriteOpened,
  RegionStart,
  WriteData,
  RegionFinish,
  WriteFinish,
  WriteCommitted,
  OpenRead,
  ReadOpened,
  AddPartitions,
  ReadEnd,
  DropPartition,
  Backlog,
  ReadData,
  PartitionFinish,
  PartitionFailed,
  ReadFinish,
  Describe,
  Described,
} as const

/** Message ids that are spoken for, and those of retired messages: never given to another. */
export const reservedMessageIds: Readonly<Record<number, string>> = {
  23: 'writes of reduce partitions (many producers, one partition)',
  24: 'writes of reduce partitions',
  64: 'moving partitions between workers',
  65: 'moving partitions between workers',
  66: 'moving partitions between workers',
}

export type MessageName = keyof typeof messages
export type MessageFields<Name extends MessageName> = FieldValues<(typeof messages)[Name]['fields']>

/** A received message: its name tells which fields it has. */
export type Message = {
  [Name in MessageName]: { readonly name: Name; readonly fields: MessageFields<Name> }
}[MessageName]

export type DataMessageName = 'WriteData' | 'ReadData'
/** A message whose body is entries in pooled memory. */
export type DataMessage = Extract<Message, { readonly name: DataMessageName }>
/** A message whose body, if any, is a plain array. */
export type ControlMessage = Exclude<Message, DataMessage>

/** The declarations in the order of their ids. */
export const messageList: readonly MessageDeclaration[] = Object.values(messages)
