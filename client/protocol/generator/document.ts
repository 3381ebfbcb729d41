// WIRE.md: the prose of wire-template.md with the tables made from the declarations.

import { type ErrorAction, errorTable } from '../../common/errors.ts'
import type { Direction, MessageDeclaration } from '../define-message.ts'
import { entryFlags, entryReserveBytes, entryTypes } from '../entry.ts'
import { limitTable } from '../limits.ts'
import { messageList, protocolFeatures, protocolVersions, reservedMessageIds } from '../messages.ts'

const directionTexts: Readonly<Record<Direction, string>> = {
  'client-to-worker': 'client → worker',
  'worker-to-client': 'worker → client',
  both: 'either side',
}

const channelTexts: Readonly<Record<MessageDeclaration['channel'], string>> = {
  connection: 'channel 0',
  channel: 'on an open channel',
  opens: 'opens its channel',
  any: 'channel 0 or an open channel',
}

const actionTexts: Readonly<Record<ErrorAction, string>> = {
  'produce-again': 'the partition is gone or unusable: run its producer again',
  'fail-attempt': 'this attempt is over: the runtime may start another',
  'retry-here': 'the same call again, with back-off, within a deadline',
  'retry-elsewhere': 'elsewhere or later, then fail saying what was short',
  'register-again': 'register the job again, then repeat the call',
  fail: 'no retry can help: fail with the reason',
}

/** Fills the placeholders of the template; one that is unknown or unused is an error. */
export function wireDocument(template: string): string {
  const values: Readonly<Record<string, string>> = {
    fieldTypes: fieldTypeTable(),
    limits: limitRows(),
    versionMax: String(protocolVersions.max),
    versionMinNote: versionMinNote(protocolVersions),
    features: features(),
    reservedIds: reservedIds(),
    messageIndex: messageIndex(),
    messages: messageList.map(messageSection).join('\n\n'),
    entryReserve: String(entryReserveBytes),
    entryFlags: namedNumbers(entryFlags),
    entryTypes: namedNumbers(entryTypes),
    errorCodes: errorCodes(),
    errorActions: errorActions(),
  }
  const used = new Set<string>()
  const text = template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    used.add(name)
    const value = values[name]
    if (value === undefined) throw new Error(`the template has an unknown placeholder ${name}`)
    return value
  })
  const unused = Object.keys(values).filter((name) => !used.has(name))
  if (unused.length > 0) throw new Error(`the template leaves out ${unused.join(', ')}`)
  return text
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function fieldTypeTable(): string {
  const layouts = new Map<string, string>()
  for (const declaration of messageList) {
    for (const { type } of Object.values(declaration.fields)) {
      const name = type.wireType.replace(/\(\d+\)$/, '(n)').replace(/^u8\(.*$/, 'u8(…)')
      layouts.set(name, type.layout)
    }
  }
  const names = [...layouts.keys()].sort()
  return table(
    ['type', 'on the wire'],
    names.map((name) => [name, layouts.get(name) ?? '']),
  )
}

function limitRows(): string {
  return table(
    ['limit', 'bytes or number', 'why'],
    Object.entries(limitTable).map(([name, { value, reason }]) => [name, String(value), reason]),
  )
}

function versionMinNote(versions: { readonly min: number; readonly max: number }): string {
  return versions.min === versions.max ? '' : `; it speaks down to ${String(versions.min)}`
}

function features(): string {
  const rows = Object.entries<bigint>(protocolFeatures)
  return rows.map(([name, bit]) => `${name} (0x${bit.toString(16)})`).join(', ') || 'none'
}

function reservedIds(): string {
  return Object.entries(reservedMessageIds)
    .map(([id, about]) => `${id} (${about})`)
    .join(', ')
}

function messageIndex(): string {
  return table(
    ['id', 'message', 'from', 'channel', 'body'],
    messageList.map(({ id, name, direction, channel, body }) => [
      String(id),
      `[${name}](#${name.toLowerCase()})`,
      directionTexts[direction],
      channelTexts[channel],
      body,
    ]),
  )
}

function messageSection(declaration: MessageDeclaration): string {
  const { name, id, direction, channel, about, bodyAbout } = declaration
  const fields = Object.entries(declaration.fields)
  const lines = [
    `### ${name}`,
    `${String(id)}, ${directionTexts[direction]}, ${channelTexts[channel]}. ${about}`,
  ]
  if (fields.length > 0) {
    const rows = fields.map(([field, { type, about: fieldAbout, since, absent }]) => {
      const added = since > 1 ? ` Since version ${String(since)}; else ${String(absent)}.` : ''
      return [field, type.wireType, fieldAbout + added]
    })
    lines.push(table(['field', 'type', 'meaning'], rows))
  } else lines.push('No fields.')
  if (bodyAbout !== '') lines.push(`Body: ${bodyAbout}`)
  return lines.join('\n\n')
}

function namedNumbers(numbers: Readonly<Record<string, number>>): string {
  return Object.entries(numbers)
    .map(([name, number]) => `${String(number)} ${name}`)
    .join(', ')
}

function errorCodes(): string {
  return table(
    ['code', 'name', 'retryable', 'what to do', 'meaning'],
    Object.entries(errorTable).map(([name, { wireCode, isRetryable, action, about }]) => [
      String(wireCode),
      name,
      isRetryable ? 'yes' : 'no',
      action,
      about,
    ]),
  )
}

function errorActions(): string {
  return table(['what to do', 'that is'], Object.entries(actionTexts))
}
