// Where options come from: flags, environment variables and a YAML file. Each source is read into
// texts by key, with what is wrong in it; what the texts mean is the kinds' affair.

import { parseDocument } from 'yaml'

import { didYouMean } from './near-miss.ts'
import type { OptionDeclaration } from './option-kinds.ts'

/** Where a value came from. */
export interface OptionSource {
  readonly kind: 'flag' | 'environment' | 'file' | 'code' | 'default'
  /** As the user would write it: `--data-port`, `SLUICE_WORKER_DATA_PORT`, a file and its key. */
  readonly where: string
}

export interface GivenTexts {
  readonly texts: readonly string[]
  readonly source: OptionSource
}

/** What one source gave. */
export interface SourceReading {
  readonly given: ReadonlyMap<string, GivenTexts>
  readonly problems: readonly string[]
}

export interface FlagReading extends SourceReading {
  readonly positionals: readonly string[]
}

/** What the sources need to know of a declaration. */
export interface DeclaredNames {
  readonly section: string
  readonly options: Readonly<Record<string, OptionDeclaration>>
}

/** A configuration file larger than this is not one. */
const yamlLengthMax = 1024 * 1024
/** The options' own keys have three parts; an alias can make a mapping contain itself. */
const yamlDepthMax = 8

const yamlRoot = 'remote-shuffle'

/** What Kubernetes sets for a service named like us; never meant as an option. */
const kubernetesVariable = /_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$/

export function flagName(option: OptionDeclaration): string {
  return `--${option.name}`
}

export function environmentName(section: string, option: OptionDeclaration): string {
  return `SLUICE_${section}_${option.name}`.toUpperCase().replaceAll('-', '_')
}

export function yamlKey(section: string, option: OptionDeclaration): string {
  return `${yamlRoot}.${section}.${option.name}`
}

/** `--name value`, `--name=value`; for booleans also `--name` and `--no-name`; `--` ends the flags. */
export function readFlags(
  declared: DeclaredNames,
  argv: readonly string[],
  positionalsMax: number,
): FlagReading {
  const reader = new FlagReader(declared)
  const positionals: string[] = []
  const rest = [...argv]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') positionals.push(...rest.splice(0))
    else if (!word.startsWith('-') || word === '-') positionals.push(word)
    else reader.take(word, rest)
  }
  const extra = positionals
    .slice(positionalsMax)
    .map((text) => `unexpected argument ${JSON.stringify(text.slice(0, 80))}`)
  return { given: reader.given, problems: [...reader.problems, ...extra], positionals }
}

class FlagReader {
  readonly given = new Map<string, { readonly texts: string[]; readonly source: OptionSource }>()
  readonly problems: string[] = []
  readonly #declared: DeclaredNames
  readonly #byName: ReadonlyMap<string, { readonly key: string; readonly of: OptionDeclaration }>

  constructor(declared: DeclaredNames) {
    this.#declared = declared
    this.#byName = new Map(
      Object.entries(declared.options).map(([key, of]) => [of.name, { key, of }]),
    )
  }

  /** Takes a flag, and its value from what follows where it needs one. */
  take(word: string, rest: string[]): void {
    const { name, text } = splitFlag(word)
    const found = this.#byName.get(name)
    const negated = this.#byName.get(name.replace(/^no-/, ''))
    if (found !== undefined) {
      const value = text ?? valueOfFlag(found.of, rest)
      if (value === undefined) this.problems.push(`${flagName(found.of)} needs a value`)
      else this.#add(found.key, found.of, value)
    } else if (negated?.of.type === 'boolean' && text === undefined) {
      this.#add(negated.key, negated.of, 'false')
    } else this.#refuse(name, text === undefined ? rest : undefined)
  }

  #add(key: string, option: OptionDeclaration, text: string): void {
    const known = this.given.get(key)
    if (known === undefined) {
      this.given.set(key, { texts: [text], source: { kind: 'flag', where: flagName(option) } })
    } else known.texts.push(text)
  }

  #refuse(name: string, rest: string[] | undefined): void {
    const flags = Object.values(this.#declared.options).map((option) => flagName(option))
    this.problems.push(unknown(`option --${name}`, `--${name}`, flags))
    // What follows is most likely its value: not worth a complaint of its own.
    if (rest?.[0]?.startsWith('-') === false) rest.shift()
  }
}

/** Only variables of this section are looked at; an unknown one among them is a problem. */
export function readEnvironment(
  declared: DeclaredNames,
  environment: Readonly<Record<string, string | undefined>>,
): SourceReading {
  const given = new Map<string, GivenTexts>()
  const names = new Map(
    Object.entries(declared.options).map(([key, of]) => [
      environmentName(declared.section, of),
      key,
    ]),
  )
  const prefix = `SLUICE_${declared.section}_`.toUpperCase().replaceAll('-', '_')
  const problems: string[] = []
  for (const [name, text] of Object.entries(environment)) {
    if (text === undefined || !name.startsWith(prefix)) continue
    const key = names.get(name)
    if (key !== undefined) {
      given.set(key, { texts: [text], source: { kind: 'environment', where: name } })
    } else if (!kubernetesVariable.test(name)) {
      problems.push(unknown(`environment variable ${name}`, name, [...names.keys()]))
    }
  }
  return { given, problems }
}

/**
 * Keys may be nested or dotted (`remote-shuffle.worker.data-port`). Other sections are left to
 * their own readers, unknown ones are problems.
 */
export function readYaml(
  declared: DeclaredNames,
  text: string | undefined,
  path: string,
  sections: readonly string[],
): SourceReading {
  const given = new Map<string, GivenTexts>()
  const problems: string[] = []
  if (text === undefined) return { given, problems }
  const byYamlKey = new Map(
    Object.entries(declared.options).map(([key, of]) => [yamlKey(declared.section, of), key]),
  )
  for (const { name, value } of flatten(parseYaml(text, path, problems), '', problems, path)) {
    const key = byYamlKey.get(name)
    const texts = textsOfYaml(value)
    if (key === undefined) {
      if (isOfAnotherSection(name, declared.section, sections)) continue
      const known = [...byYamlKey.keys(), ...sections.map((section) => `${yamlRoot}.${section}`)]
      problems.push(`${path}: ${unknown(`key ${name}`, name, known)}`)
    } else if (texts === undefined) {
      problems.push(`${path}: ${name} must be a text, a number, true, false or a list of these`)
    } else {
      given.set(key, { texts, source: { kind: 'file', where: `${path}: ${name}` } })
    }
  }
  return { given, problems }
}

function splitFlag(word: string): { readonly name: string; readonly text: string | undefined } {
  const equals = word.indexOf('=')
  const name = (equals === -1 ? word : word.slice(0, equals)).replace(/^--?/, '')
  return { name, text: equals === -1 ? undefined : word.slice(equals + 1) }
}

/** Takes the next argument as the value; a boolean takes it only when it is one. */
function valueOfFlag(option: OptionDeclaration, rest: string[]): string | undefined {
  const next = rest[0]
  if (option.type === 'boolean' && next !== 'true' && next !== 'false') return 'true'
  if (next === undefined || /^--[a-z]/.test(next)) return undefined
  return rest.shift()
}

/** "unknown X" with what is near and, when the list is short, what is allowed. */
function unknown(what: string, name: string, allowed: readonly string[]): string {
  const suggestion = didYouMean(name, allowed)
  const list = suggestion === '' ? `; allowed: ${allowed.join(', ') || 'none'}` : ''
  return `unknown ${what}${suggestion}${list}`
}

function parseYaml(text: string, path: string, problems: string[]): unknown {
  if (text.length > yamlLengthMax) {
    problems.push(`${path}: is larger than ${String(yamlLengthMax)} characters`)
    return {}
  }
  const document = parseDocument(text)
  for (const error of document.errors) {
    const [line] = error.message.split('\n')
    problems.push(`${path}: ${line ?? error.code}`)
  }
  if (document.errors.length > 0) return {}
  try {
    return document.toJS({ maxAliasCount: 100 }) ?? {}
  } catch (error) {
    // An alias that nothing defines, or too many of them.
    problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`)
    return {}
  }
}

/** Nested mappings as dotted names with their scalar or list values. */
function flatten(
  node: unknown,
  prefix: string,
  problems: string[],
  path: string,
): { name: string; value: unknown }[] {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) {
    if (prefix === '') problems.push(`${path}: must be a mapping with ${yamlRoot} at its top`)
    return prefix === '' ? [] : [{ name: prefix, value: node }]
  }
  if (prefix.split('.').length > yamlDepthMax) {
    problems.push(`${path}: ${prefix.slice(0, 40)}… is nested too deeply, or contains itself`)
    return []
  }
  return Object.entries(node).flatMap(([key, value]) =>
    flatten(value, prefix === '' ? key : `${prefix}.${key}`, problems, path),
  )
}

function textsOfYaml(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return isScalar(value) ? [String(value)] : undefined
  return value.every(isScalar) ? value.map(String) : undefined
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/** A section without a value (`worker:` alone) is an empty one, not an unknown key. */
function isOfAnotherSection(name: string, section: string, sections: readonly string[]): boolean {
  if (name === yamlRoot || name === `${yamlRoot}.${section}`) return true
  return sections.some(
    (other) =>
      other !== section &&
      (name === `${yamlRoot}.${other}` || name.startsWith(`${yamlRoot}.${other}.`)),
  )
}
