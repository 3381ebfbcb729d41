// The project's own files as text and syntax, for the tests that hold its rules.

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url))
export const sourceFolders = [
  'client',
  'shuffle-manager',
  'shuffle-worker',
  'runtime',
  'cli',
  'bench',
]

export interface Import {
  readonly specifier: string
  /** Path from the root for a relative import, else undefined. */
  readonly path: string | undefined
  readonly isTypeOnly: boolean
}

export interface SourceFile {
  /** From the root, with slashes. */
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
  /** Whether anything in it runs: a function or method with a body. */
  readonly hasLogic: boolean
  readonly isBarrel: boolean
}

const skippedFolders = new Set(['node_modules', 'dist', 'coverage', '.git', '.cache', 'target'])

/** Paths from the root of all files below `folder` whose names end in one of `endings`. */
export function filesBelow(folder: string, endings: readonly string[]): string[] {
  const found: string[] = []
  for (const entry of readdirSync(join(projectRoot, folder), { withFileTypes: true })) {
    if (skippedFolders.has(entry.name)) continue
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) found.push(...filesBelow(path, endings))
    else if (endings.some((ending) => entry.name.endsWith(ending))) found.push(path)
  }
  return found.sort()
}

export function readText(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8')
}

export function readSourceFiles(folders: readonly string[] = sourceFolders): SourceFile[] {
  return folders.flatMap((folder) => filesBelow(folder, ['.ts'])).map(readSourceFile)
}

function readSourceFile(path: string): SourceFile {
  const text = readText(path)
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true)
  const imports: Import[] = []
  let hasLogic = false
  let isBarrel = false
  const visit = (node: ts.Node): void => {
    if (isRunnable(node)) hasLogic = true
    if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) isBarrel = true
    const found = importOf(node, path)
    if (found !== undefined) imports.push(found)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return { path, text, imports, hasLogic, isBarrel }
}

function isRunnable(node: ts.Node): boolean {
  if (!ts.isFunctionLike(node)) return false
  return 'body' in node && node.body !== undefined
}

function importOf(node: ts.Node, path: string): Import | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    const { moduleSpecifier } = node
    if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier)) return undefined
    return describe(moduleSpecifier.text, path, isTypeOnly(node))
  }
  const isDynamic =
    ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
  const argument = isDynamic ? node.arguments[0] : undefined
  if (argument === undefined || !ts.isStringLiteral(argument)) return undefined
  return describe(argument.text, path, false)
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  return ts.isExportDeclaration(node)
    ? node.isTypeOnly
    : node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
}

function describe(specifier: string, from: string, isTypeOnly: boolean): Import {
  const path = specifier.startsWith('.') ? normalize(join(dirname(from), specifier)) : undefined
  return { specifier, path, isTypeOnly }
}
