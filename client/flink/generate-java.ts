// The wire as Java constants for the Flink plugin: made from the same declarations as WIRE.md and the
// golden vectors, by `npm run generate`, and committed. A build tool, no part of the client.

import { errorTable } from '../common/errors.ts'
import { idLengthMax } from '../common/ids.ts'
import {
  broadcastSubpartition,
  compressedPrefixLength,
  entryFlags,
  entryHeaderLength,
  entryReserveBytes,
  entryTypes,
} from '../protocol/entry.ts'
import { limitTable } from '../protocol/limits.ts'
import { messageList, noRegion, protocolMagic, protocolVersions } from '../protocol/messages.ts'
import { segmentHeaderLength } from '../protocol/read-segment.ts'

export interface JavaFile {
  /** Relative to this folder. */
  readonly path: string
  readonly text: string
}

const folder = 'src/main/java/org/sluice/flink/wire'
const packageLine = 'package org.sluice.flink.wire;'

/** `notice` stands in line 1 of each. */
export function javaFiles(notice: string): readonly JavaFile[] {
  return [
    { path: `${folder}/Wire.java`, text: page(notice, wireClass()) },
    { path: `${folder}/ErrorCode.java`, text: page(notice, errorCodeEnum()) },
    { path: `${folder}/MessageType.java`, text: page(notice, messageTypeEnum()) },
  ]
}

function page(notice: string, body: string): string {
  return `// ${notice}\n\n${packageLine}\n\n${body}`
}

function wireClass(): string {
  const lines = [
    intConstant('MAGIC', protocolMagic, 'First field of Hello and HelloAck.'),
    intConstant('VERSION_MIN', protocolVersions.min, 'The oldest version that is spoken.'),
    intConstant('VERSION_MAX', protocolVersions.max, 'The newest version that is spoken.'),
    longConstant('NO_REGION', noRegion, 'AddCredit on a read channel names no region.'),
    intConstant('ID_LENGTH_MAX', idLengthMax, 'Longest id in characters.'),
    intConstant('ENTRY_HEADER_LENGTH', entryHeaderLength, 'Bytes before the payload of an entry.'),
    intConstant(
      'ENTRY_RESERVE_BYTES',
      entryReserveBytes,
      'How much less than the buffer size the payload of an entry is at most.',
    ),
    intConstant(
      'COMPRESSED_PREFIX_LENGTH',
      compressedPrefixLength,
      'Bytes of the uncompressed length before a compressed block.',
    ),
    intConstant(
      'SEGMENT_HEADER_LENGTH',
      segmentHeaderLength,
      "Bytes before a segment's entries in ReadData.",
    ),
    intConstant(
      'BROADCAST_SUBPARTITION',
      broadcastSubpartition,
      'Stands in the subpartition field of every entry of a broadcast region.',
    ),
    ...Object.entries(entryFlags).map(([name, value]) =>
      intConstant(`FLAG_${constantName(name)}`, value, 'Bit of an entry.'),
    ),
    ...Object.entries(entryTypes).map(([name, value]) =>
      intConstant(`TYPE_${constantName(name)}`, value, 'Type of an entry.'),
    ),
    ...Object.entries(limitTable).map(([name, { value, reason }]) =>
      intConstant(constantName(name), value, reason),
    ),
  ]
  return [
    '/** Numbers of the wire. */',
    'public final class Wire {',
    lines.join('\n'),
    '  private Wire() {}',
    '}',
    '',
  ].join('\n')
}

function errorCodeEnum(): string {
  const constants = Object.entries(errorTable).map(
    ([name, { wireCode, isRetryable, action, about }]) =>
      `  /** ${about} */\n  ${name}(${String(wireCode)}, ${String(isRetryable)}, Action.${constantName(action)})`,
  )
  const actions = [...new Set(Object.values(errorTable).map(({ action }) => action))]
  return `/** What can go wrong, and what to do about it. */
public enum ErrorCode {
${constants.join(',\n')};

  /** What the runtime should do. */
  public enum Action {
    ${actions.map(constantName).join(',\n    ')}
  }

  private final int wireCode;
  private final boolean retryable;
  private final Action action;

  ErrorCode(int wireCode, boolean retryable, Action action) {
    this.wireCode = wireCode;
    this.retryable = retryable;
    this.action = action;
  }

  public int wireCode() {
    return wireCode;
  }

  /** Whether the same call may succeed when repeated. */
  public boolean isRetryable() {
    return retryable;
  }

  public Action action() {
    return action;
  }

  /** A number that is not in the table counts as PROTOCOL. */
  public static ErrorCode ofWire(int wireCode) {
    for (ErrorCode code : values()) {
      if (code.wireCode == wireCode) {
        return code;
      }
    }
    return PROTOCOL;
  }

  /** A name that is not in the table counts as PROTOCOL. */
  public static ErrorCode ofName(String name) {
    for (ErrorCode code : values()) {
      if (code.name().equals(name)) {
        return code;
      }
    }
    return PROTOCOL;
  }
}
`
}

function messageTypeEnum(): string {
  const constants = messageList.map((message) => {
    const fields = Object.entries(message.fields).map(
      ([name, { type, since }]) =>
        `      new Field(${JSON.stringify(name)}, ${JSON.stringify(type.wireType)}, ${String(since)})`,
    )
    const head = [
      JSON.stringify(message.name),
      String(message.id),
      `Direction.${constantName(message.direction)}`,
      `ChannelUse.${constantName(message.channel)}`,
      `BodyKind.${constantName(message.body)}`,
    ].join(', ')
    return `  /** ${message.about} */\n  ${constantName(message.name)}(${[head, ...fields].join(',\n')})`
  })
  return `/** Every message: its number, who sends it, where, and its fields in order. */
public enum MessageType {
${constants.join(',\n')};
${messageTypeMembers}`
}

const messageTypeMembers = `
  /** Who sends it. */
  public enum Direction {
    CLIENT_TO_WORKER,
    WORKER_TO_CLIENT,
    BOTH
  }

  /** Which channel numbers it may carry. */
  public enum ChannelUse {
    CONNECTION,
    CHANNEL,
    OPENS,
    ANY
  }

  /** What follows the header. */
  public enum BodyKind {
    NONE,
    CONTROL,
    DATA
  }

  private static final MessageType[] BY_ID = new MessageType[256];

  static {
    for (MessageType type : values()) {
      BY_ID[type.id] = type;
    }
  }

  private final String wireName;
  private final int id;
  private final Direction direction;
  private final ChannelUse channelUse;
  private final BodyKind bodyKind;
  private final Field[] fields;

  MessageType(
      String wireName,
      int id,
      Direction direction,
      ChannelUse channelUse,
      BodyKind bodyKind,
      Field... fields) {
    this.wireName = wireName;
    this.id = id;
    this.direction = direction;
    this.channelUse = channelUse;
    this.bodyKind = bodyKind;
    this.fields = fields;
  }

  /** Null: a type that this version does not know. */
  public static MessageType ofId(int id) {
    return BY_ID[id & 0xff];
  }

  public String wireName() {
    return wireName;
  }

  public int id() {
    return id;
  }

  public Direction direction() {
    return direction;
  }

  public ChannelUse channelUse() {
    return channelUse;
  }

  public BodyKind bodyKind() {
    return bodyKind;
  }

  int fieldCount() {
    return fields.length;
  }

  Field field(int position) {
    return fields[position];
  }

  int positionOf(String fieldName) {
    for (int position = 0; position < fields.length; position++) {
      if (fields[position].name().equals(fieldName)) {
        return position;
      }
    }
    throw new IllegalArgumentException(wireName + " has no field " + fieldName);
  }
}
`

function intConstant(name: string, value: number, about: string): string {
  const literal = value > 0x7fff_ffff ? `0x${value.toString(16).toUpperCase()}` : String(value)
  return `  /** ${about} */\n  public static final int ${name} = ${literal};\n`
}

function longConstant(name: string, value: number, about: string): string {
  return `  /** ${about} */\n  public static final long ${name} = ${String(value)}L;\n`
}

/** `lastOfRun`, `client-to-worker` and `HelloAck` as LAST_OF_RUN, CLIENT_TO_WORKER, HELLO_ACK. */
function constantName(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/-/g, '_')
    .toUpperCase()
}
