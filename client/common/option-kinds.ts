// The kinds of option: for each how its text is read, what its limits are, and how its value is
// written back so that the same text means the same value.

import path from 'node:path'

import { didYouMean } from './near-miss.ts'

interface OptionBase {
  /** Name in kebab-case; the flag, the environment variable and the YAML key are made from it. */
  readonly name: string
  /** One sentence for help and for the reference. */
  readonly about: string
  /** Without it and without a default the value may be undefined. */
  readonly required?: true
  /** Of one call: given as a flag alone, never in the environment or in a file. */
  readonly flagOnly?: true
  /** Takes effect while the process runs, when it is told to read its configuration again. */
  readonly reloadable?: true
}

/** Free text of at most `lengthMax` characters; `pattern` must match the whole of it. */
export interface StringOption extends OptionBase {
  readonly type: 'string'
  readonly default?: string
  readonly lengthMax?: number
  readonly pattern?: RegExp
  /** What `pattern` allows, in words: "an address such as http://127.0.0.1:9700". */
  readonly allowed?: string
}

/** A file or directory; a relative one is the caller's. */
export interface PathOption extends OptionBase {
  readonly type: 'path'
  readonly default?: string
}

/** A host name or an IP address. */
export interface HostOption extends OptionBase {
  readonly type: 'host'
  readonly default?: string
}

/** 0 takes a free port. */
export interface PortOption extends OptionBase {
  readonly type: 'port'
  readonly default?: number
}

export interface IntegerOption extends OptionBase {
  readonly type: 'integer'
  readonly default?: number
  /** 0 unless stated. */
  readonly min?: number
  /** 2^31 - 1 unless stated. */
  readonly max?: number
}

/** A size such as 64mb; units are powers of 1024. The value is in bytes and its key ends in Bytes. */
export interface BytesOption extends OptionBase {
  readonly type: 'bytes'
  readonly default?: string
  readonly min?: string
  readonly max?: string
}

/** A time such as 15s. The value is in milliseconds and its key ends in Ms. */
export interface DurationOption extends OptionBase {
  readonly type: 'duration'
  readonly default?: string
  readonly min?: string
  readonly max?: string
}

export interface BooleanOption extends OptionBase {
  readonly type: 'boolean'
  readonly default?: boolean
}

export interface EnumOption extends OptionBase {
  readonly type: 'enum'
  readonly choices: readonly string[]
  readonly default?: string
}

/** Texts separated by commas, or the flag several times. */
export interface ListOption extends OptionBase {
  readonly type: 'list'
  /** What each item is; `string` unless stated. */
  readonly of?: 'string' | 'path' | 'host'
  readonly default?: readonly string[]
  /** 0 unless stated. */
  readonly itemsMin?: number
  /** 64 unless stated. */
  readonly itemsMax?: number
}

export type OptionDeclaration =
  | StringOption
  | PathOption
  | HostOption
  | PortOption
  | IntegerOption
  | BytesOption
  | DurationOption
  | BooleanOption
  | EnumOption
  | ListOption

export type OptionValue = string | number | boolean | readonly string[]

/** What reading a text gave: the value, or what is wrong with it. */
export type OptionReading =
  | { readonly kind: 'value'; readonly value: OptionValue }
  | { readonly kind: 'problem'; readonly problem: string }

/** Longest text of one option; a path of Linux is at most this long. */
export const optionTextLengthMax = 4096
const stringLengthMax = 1024
const listItemsMax = 64
const integerMax = 2 ** 31 - 1

const bytesUnits = [
  ['tb', 1024 ** 4],
  ['gb', 1024 ** 3],
  ['mb', 1024 ** 2],
  ['kb', 1024],
  ['b', 1],
] as const

const durationUnits = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

/** 24 days: timers of the platform take no longer delay. */
const durationMaxMs = 2 ** 31 - 1
const durationMaxText = '24d'

/** Reads one text (for a list: its items) as the option's kind; `workingDirectory` is the caller's. */
export function readOption(
  option: OptionDeclaration,
  texts: readonly string[],
  workingDirectory: string | undefined,
): OptionReading {
  const tooLong = texts.find((text) => text.length > optionTextLengthMax)
  if (tooLong !== undefined) {
    return problem(`is longer than ${String(optionTextLengthMax)} characters`)
  }
  if (option.type === 'list') return readList(option, texts, workingDirectory)
  const [text, more] = texts
  if (text === undefined) return problem('has no value')
  if (more !== undefined) return problem('is given more than once')
  return readOne(option, text, workingDirectory)
}

/** The text that reads back as `value`. */
export function formatOption(option: OptionDeclaration, value: OptionValue): string {
  if (typeof value === 'number') {
    if (option.type === 'bytes') return formatWithUnit(value, bytesUnits)
    if (option.type === 'duration') return formatWithUnit(value, durationUnits)
    return String(value)
  }
  return typeof value === 'string' ? value : String(value)
}

/** What may be written for the option, in words for error texts, help and the reference. */
export function describeAllowed(option: OptionDeclaration): string {
  switch (option.type) {
    case 'string':
      return describeString(option)
    case 'path':
      return 'a path'
    case 'host':
      return 'a host name or an IP address'
    case 'port':
      return 'a port from 0 to 65535, 0 taking a free one'
    case 'integer':
      return `a whole number ${describeRange(String(option.min ?? 0), String(option.max ?? integerMax))}`
    case 'bytes':
      return `a size such as 64mb (units b, kb, mb, gb, tb) ${describeRange(option.min ?? '0b', option.max)}`
    case 'duration':
      return `a time such as 15s (units ms, s, m, h, d) ${describeRange(option.min ?? '0ms', option.max ?? durationMaxText)}`
    case 'boolean':
      return 'true or false'
    case 'enum':
      return `one of ${option.choices.join(', ')}`
    case 'list':
      return describeList(option)
  }
}

/** A size in bytes; undefined when the text is none. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,16})\s*(b|kb|kib|k|mb|mib|m|gb|gib|g|tb|tib|t)?$/i.exec(text.trim())
  if (match === null) return undefined
  const unit = (match[2] ?? 'b').toLowerCase()
  const factor = bytesUnits.find(([name]) => name.startsWith(unit.charAt(0)))?.[1] ?? 1
  const value = Number(match[1]) * factor
  return Number.isSafeInteger(value) ? value : undefined
}

/** A time in milliseconds; undefined when the text is none. A bare number but 0 has no unit. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,16})\s*(ms|s|m|min|h|d)?$/i.exec(text.trim())
  if (match === null) return undefined
  const amount = Number(match[1])
  const unit = match[2]?.toLowerCase()
  if (unit === undefined) return amount === 0 ? 0 : undefined
  const factor = durationUnits.find(([name]) => name === (unit === 'min' ? 'm' : unit))?.[1] ?? 1
  const value = amount * factor
  return Number.isSafeInteger(value) ? value : undefined
}

export function formatBytes(bytes: number): string {
  return formatWithUnit(bytes, bytesUnits)
}

export function formatDuration(milliseconds: number): string {
  return formatWithUnit(milliseconds, durationUnits)
}

function readOne(
  option: Exclude<OptionDeclaration, ListOption>,
  text: string,
  workingDirectory: string | undefined,
): OptionReading {
  switch (option.type) {
    case 'string':
      return readString(option, text)
    case 'path':
      return readPath(text, workingDirectory)
    case 'host':
      return isHost(text) ? value(text) : notAllowed(option, text)
    case 'port':
      return readNumber(option, text, parseInteger(text), { min: 0, max: 65_535 })
    case 'integer':
    case 'bytes':
    case 'duration':
      return readLimited(option, text)
    case 'boolean':
      return readBoolean(option, text)
    case 'enum':
      return readEnum(option, text)
  }
}

function readString(option: StringOption, text: string): OptionReading {
  const isShortEnough = text.length <= (option.lengthMax ?? stringLengthMax)
  const isMatching = option.pattern?.test(text) ?? true
  return isShortEnough && isMatching ? value(text) : notAllowed(option, text)
}

function readPath(text: string, workingDirectory: string | undefined): OptionReading {
  if (text === '' || text.includes('\0')) return problem('must be a path, got an empty text')
  return value(workingDirectory === undefined ? text : path.resolve(workingDirectory, text))
}

function readLimited(
  option: IntegerOption | BytesOption | DurationOption,
  text: string,
): OptionReading {
  if (option.type === 'integer') {
    const limits = { min: option.min ?? 0, max: option.max ?? integerMax }
    return readNumber(option, text, parseInteger(text), limits)
  }
  const parse = option.type === 'bytes' ? parseBytes : parseDuration
  const largest = option.type === 'bytes' ? Number.MAX_SAFE_INTEGER : durationMaxMs
  const min = parse(option.min ?? '0') ?? 0
  const max = parse(option.max ?? '') ?? largest
  return readNumber(option, text, parse(text), { min, max })
}

function readNumber(
  option: OptionDeclaration,
  text: string,
  parsed: number | undefined,
  limits: { readonly min: number; readonly max: number },
): OptionReading {
  if (parsed === undefined || parsed < limits.min || parsed > limits.max) {
    return notAllowed(option, text)
  }
  return value(parsed)
}

function readBoolean(option: BooleanOption, text: string): OptionReading {
  if (text === 'true' || text === 'false') return value(text === 'true')
  return notAllowed(option, text)
}

function readEnum(option: EnumOption, text: string): OptionReading {
  if (option.choices.includes(text)) return value(text)
  const { problem: what } = notAllowed(option, text)
  return problem(`${what}${didYouMean(text, option.choices)}`)
}

function readList(
  option: ListOption,
  texts: readonly string[],
  workingDirectory: string | undefined,
): OptionReading {
  const items = texts.flatMap((text) => (text === '' ? [] : text.split(',')))
  const values: string[] = []
  for (const item of items) {
    const reading = readOne(
      { type: option.of ?? 'string', name: option.name, about: option.about },
      item.trim(),
      workingDirectory,
    )
    if (reading.kind === 'problem') return reading
    if (reading.value === '') return problem('has an empty item')
    values.push(String(reading.value))
  }
  if (values.length < (option.itemsMin ?? 0) || values.length > (option.itemsMax ?? listItemsMax)) {
    return problem(`must be ${describeList(option)}, got ${String(values.length)} items`)
  }
  return value(values)
}

function describeString(option: StringOption): string {
  if (option.allowed !== undefined) return option.allowed
  const length = `a text of at most ${String(option.lengthMax ?? stringLengthMax)} characters`
  return option.pattern === undefined ? length : `${length} like ${option.pattern.source}`
}

function describeList(option: ListOption): string {
  const items = { string: 'texts', path: 'paths', host: 'hosts' }[option.of ?? 'string']
  return `${String(option.itemsMin ?? 0)} to ${String(option.itemsMax ?? listItemsMax)} ${items} separated by commas`
}

function describeRange(min: string, max: string | undefined): string {
  return max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
}

function parseInteger(text: string): number | undefined {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
}

function isHost(text: string): boolean {
  return (
    text.length <= 253 &&
    /^[0-9A-Za-z]([0-9A-Za-z._:%-]*[0-9A-Za-z])?$|^::[0-9a-fA-F:.]*$/.test(text)
  )
}

function formatWithUnit(amount: number, units: readonly (readonly [string, number])[]): string {
  const fitting = units.find(([, factor]) => amount >= factor && amount % factor === 0)
  const [name, factor] = fitting ?? units.at(-1) ?? ['', 1]
  return `${String(amount / factor)}${name}`
}

function value(of: OptionValue): OptionReading {
  return { kind: 'value', value: of }
}

function problem(what: string): { readonly kind: 'problem'; readonly problem: string } {
  return { kind: 'problem', problem: what }
}

function notAllowed(option: OptionDeclaration, text: string) {
  return problem(`must be ${describeAllowed(option)}, got ${JSON.stringify(text.slice(0, 80))}`)
}
