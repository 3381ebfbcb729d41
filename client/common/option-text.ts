// What people read of options: help, the effective configuration, and the reference.

import {
  describeAllowed,
  formatOption,
  type OptionDeclaration,
  type OptionValue,
} from './option-kinds.ts'
import {
  environmentName,
  flagName,
  yamlKey,
  type DeclaredNames,
  type OptionSource,
} from './option-sources.ts'
import type { OptionsDeclaration, OptionTable } from './options.ts'

export interface HelpParts {
  /** `sluice sort --input FILE --output FILE`. */
  readonly usage: string
  /** One paragraph. */
  readonly about: string
  readonly examples?: readonly { readonly command: string; readonly about: string }[]
  /** Options that every command has, as lines of name and meaning. */
  readonly common?: readonly (readonly [string, string])[]
}

const columnWidthMax = 30
const lineWidthMax = 100

/** The help of a command: what it does, its options with limits and defaults, examples. */
export function helpText<Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  parts: HelpParts,
): string {
  const rows = Object.values(declaration.options).map((option): readonly [string, string] => [
    option.type === 'boolean' ? flagName(option) : `${flagName(option)} ${placeholder(option)}`,
    `${option.about} ${helpDetails(option)}`,
  ])
  const about = breakWords(parts.about, lineWidthMax).join('\n')
  const sections = [`Usage: ${parts.usage}`, about]
  if (rows.length > 0) sections.push(`Options:\n${columns(rows)}`)
  if (parts.common !== undefined) sections.push(`Everywhere:\n${columns(parts.common)}`)
  const flagsOnly = Object.values(declaration.options).filter(({ flagOnly }) => flagOnly === true)
  const first = Object.values(declaration.options).find(({ flagOnly }) => flagOnly !== true)
  if (first !== undefined) {
    const others = flagsOnly.length === 0 ? '' : ` but ${flagsOnly.map(flagName).join(', ')}`
    sections.push(
      `Each option${others} can also be set in the environment (${environmentName(declaration.section, first)})\n` +
        `and in the file given by --config (${yamlKey(declaration.section, first)}).`,
    )
  }
  if (parts.examples !== undefined) {
    const examples = parts.examples.map(({ command, about }) => `  # ${about}\n  ${command}`)
    sections.push(`Examples:\n${examples.join('\n\n')}`)
  }
  return `${sections.join('\n\n')}\n`
}

/** The effective values as YAML that can be given back by --config, each with where it came from. */
export function printConfig<Table extends OptionTable>(
  declaration: OptionsDeclaration<Table>,
  parsed: {
    readonly values: { readonly [Key in keyof Table]: unknown }
    readonly sources: Readonly<Record<keyof Table, OptionSource>>
  },
): string {
  const lines = Object.entries(declaration.options).map(([key, option]) => {
    const value = parsed.values[key] as OptionValue | undefined
    const source = parsed.sources[key]?.where ?? 'default'
    if (value === undefined) return `    # ${option.name}: not set`
    const text = Array.isArray(value) ? JSON.stringify(value) : scalarText(option, value)
    return `    ${option.name}: ${text} # ${source}`
  })
  return `remote-shuffle:\n  ${declaration.section}:\n${lines.join('\n')}\n`
}

/** The reference of all options, as Markdown, a table for each section. */
export function optionsReference(declarations: readonly DeclaredNames[]): string {
  const parts = declarations.map(({ section, options }) => {
    const rows = Object.values(options).map((option) =>
      [
        `\`${flagName(option)}\``,
        `\`${environmentName(section, option)}\``,
        `\`${yamlKey(section, option)}\``,
        cell(describeAllowed(option)),
        option.default === undefined
          ? option.required
            ? 'required'
            : ''
          : `\`${defaultText(option)}\``,
        cell(option.reloadable === true ? `${option.about} Reloadable.` : option.about),
      ].join(' | '),
    )
    const head = 'Flag | Environment | YAML | Allowed | Default | Meaning'
    return `## ${section}\n\n| ${head} |\n| --- | --- | --- | --- | --- | --- |\n${rows.map((row) => `| ${row} |`).join('\n')}\n`
  })
  return parts.join('\n')
}

function placeholder(option: OptionDeclaration): string {
  const names = {
    string: 'TEXT',
    path: 'PATH',
    host: 'HOST',
    port: 'PORT',
    integer: 'N',
    bytes: 'SIZE',
    duration: 'TIME',
    boolean: '',
    enum: 'NAME',
    list: 'LIST',
  }
  return names[option.type]
}

function helpDetails(option: OptionDeclaration): string {
  const details = option.type === 'boolean' ? [] : [describeAllowed(option)]
  if (option.required === true) details.push('required')
  if (option.default !== undefined) details.push(`default ${defaultText(option)}`)
  return details.length === 0 ? '' : `(${details.join('; ')})`
}

function defaultText(option: OptionDeclaration): string {
  if (option.type !== 'list') return String(option.default)
  return option.default?.join(',') ?? ''
}

function scalarText(option: OptionDeclaration, value: OptionValue): string {
  const text = formatOption(option, value)
  return typeof value === 'string' ? JSON.stringify(text) : text
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** Two columns; the second is broken where lines would be too long. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.min(columnWidthMax, Math.max(...rows.map(([name]) => name.length)))
  return rows
    .map(([name, text]) => {
      const indent = ' '.repeat(width + 4)
      const lines = breakWords(text, lineWidthMax - width - 4)
      const first = name.length > width ? `  ${name}\n${indent}` : `  ${name.padEnd(width)}  `
      return `${first}${lines.join(`\n${indent}`)}`
    })
    .join('\n')
}

function breakWords(text: string, widthMax: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ').filter((part) => part !== '')) {
    if (line !== '' && line.length + 1 + word.length > widthMax) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
