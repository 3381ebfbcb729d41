// Makes a clean clone ready to run: installs the dependencies and compiles, each only when it is
// missing or older than what it is made from. Plain JavaScript without dependencies, because it runs
// before there are any. It speaks on standard error only: standard output belongs to the command.
//
//     package-lock.json ──npm ci──> node_modules  (marker: node_modules/.sluice-installed)
//     sources, tsconfig ──tsc─────> dist          (marker: dist/.built)
//
// A marker is written last and holds a fingerprint, so a set-up that was interrupted is done again.
// One process at a time works; others wait for it.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

const nodeVersionMin = [20, 20]
const sourceFolders = ['client', 'shuffle-manager', 'shuffle-worker', 'cli', 'runtime', 'bench']
const lockPollMs = 100
/** Longer than an install over a slow line takes. */
const lockWaitMs = 600_000
const unnamedLockMs = 5_000

/** Resolves when `root` is ready; throws an Error whose message is for the user. */
export async function setUp(root = dirname(dirname(fileURLToPath(import.meta.url)))) {
  checkNodeVersion(process.versions.node)
  if (isReady(root)) return
  const unlock = await lock(root)
  try {
    if (!isInstalled(root)) await install(root)
    if (!isBuilt(root)) await build(root)
  } finally {
    unlock()
  }
}

/** Throws unless `version` is one that runs the product. */
export function checkNodeVersion(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = nodeVersionMin
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return
  throw new Error(`sluice needs Node ${nodeVersionMin.join('.')} or newer; this is Node ${version}`)
}

function isReady(root) {
  return isInstalled(root) && isBuilt(root)
}

function isInstalled(root) {
  return readOrEmpty(installMarker(root)) === lockFingerprint(root)
}

async function install(root) {
  const hasForeignInstall =
    existsSync(join(root, 'node_modules')) && !existsSync(installMarker(root))
  if (hasForeignInstall && matchesLock(root)) {
    // Installed by hand with npm: nothing to do but to remember it.
    mark(installMarker(root), lockFingerprint(root))
    return
  }
  say('installing the dependencies (npm ci)')
  rmSync(installMarker(root), { force: true })
  await run(root, npmCommand(), ['ci', '--no-audit', '--no-fund'])
  mark(installMarker(root), lockFingerprint(root))
}

/** npm keeps a copy of the lock file with what it installed; every package of ours must be in it. */
function matchesLock(root) {
  const installed = packagesOf(join(root, 'node_modules', '.package-lock.json'))
  const wanted = packagesOf(join(root, 'package-lock.json'))
  if (installed === undefined || wanted === undefined) return false
  return Object.entries(wanted).every(
    ([path, entry]) =>
      path === '' || entry.optional === true || installed[path]?.version === entry.version,
  )
}

function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch {
    // Missing or half-written: then it is installed again.
    return undefined
  }
}

function isBuilt(root) {
  return (
    existsSync(join(root, 'dist')) && readOrEmpty(buildMarker(root)) === sourceFingerprint(root)
  )
}

async function build(root) {
  say('compiling')
  const fingerprint = sourceFingerprint(root)
  rmSync(buildMarker(root), { force: true })
  // Made beside and renamed, so that no half-made dist is ever seen, and none keeps removed files.
  const making = join(root, '.cache', 'dist')
  rmSync(making, { recursive: true, force: true })
  try {
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const project = [
      '-p',
      'tsconfig.build.json',
      '--outDir',
      making,
      '--incremental',
      'false',
      '--tsBuildInfoFile',
      'null',
    ]
    await run(root, process.execPath, [compiler, ...project])
    writeFileSync(join(making, '.built'), fingerprint)
    rmSync(join(root, 'dist'), { recursive: true, force: true })
    renameSync(making, join(root, 'dist'))
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}

function installMarker(root) {
  return join(root, 'node_modules', '.sluice-installed')
}

function buildMarker(root) {
  return join(root, 'dist', '.built')
}

function mark(path, fingerprint) {
  writeFileSync(`${path}.new`, fingerprint)
  renameSync(`${path}.new`, path)
}

function lockFingerprint(root) {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

/** Path, size and time of every source: a few milliseconds for some hundred files. */
function sourceFingerprint(root) {
  const hash = createHash('sha256')
  for (const name of ['package.json', 'tsconfig.json', 'tsconfig.build.json']) {
    addFile(hash, root, name)
  }
  for (const folder of sourceFolders) addFolder(hash, root, folder)
  return hash.digest('hex')
}

function addFolder(hash, root, folder) {
  const path = join(root, folder)
  if (!existsSync(path)) return
  for (const entry of readdirSync(path, { withFileTypes: true }).sort(byName)) {
    const name = join(folder, entry.name)
    if (entry.isDirectory()) addFolder(hash, root, name)
    else if (/\.(ts|json)$/.test(entry.name)) addFile(hash, root, name)
  }
}

function addFile(hash, root, name) {
  const { size, mtimeMs } = statSync(join(root, name))
  hash.update(`${name} ${size} ${mtimeMs}\n`)
}

function byName(a, b) {
  return a.name < b.name ? -1 : 1
}

/**
 * The lock is a directory, made atomically; the names in it are the processes that work under it: a
 * lock is dead when none of them runs.
 */
async function lock(root) {
  const path = lockPath(root)
  for (let waitedMs = 0; !tryLock(path); waitedMs += lockPollMs) {
    if (waitedMs === 0) say('waiting for another set-up')
    if (waitedMs >= lockWaitMs) {
      throw new Error(`another set-up does not finish; if none runs, remove ${path}`)
    }
    await sleep(lockPollMs)
  }
  return () => {
    rmSync(path, { recursive: true, force: true })
    removeIfEmpty(dirname(path))
  }
}

function lockPath(root) {
  return join(root, '.cache', 'set-up.lock')
}

function tryLock(path) {
  mkdirSync(dirname(path), { recursive: true })
  takeFromDead(path)
  try {
    mkdirSync(path)
    noteWorker(path, process.pid)
    return true
  } catch (error) {
    if (error.code === 'EEXIST' || error.code === 'ENOENT') return false
    throw error
  }
}

function noteWorker(path, pid) {
  writeFileSync(join(path, String(pid)), '')
}

/** Moved away before it is removed, and looked at again: another may have taken it meanwhile. */
function takeFromDead(path) {
  if (!isDead(path)) return
  const away = `${path}.${process.pid}`
  try {
    renameSync(path, away)
    if (isDead(away)) rmSync(away, { recursive: true, force: true })
    else renameSync(away, path)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}

function isDead(path) {
  try {
    const workers = readdirSync(path)
    // Without a name its holder is between its two calls, or died there.
    if (workers.length === 0) return Date.now() - statSync(path).mtimeMs > unnamedLockMs
    return !workers.some((pid) => isRunning(Number(pid)))
  } catch (error) {
    if (error.code === 'ENOENT') return false
    throw error
  }
}

function removeIfEmpty(path) {
  try {
    rmdirSync(path)
  } catch {
    // Others use it too.
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Runs a command with both its outputs on standard error; ends with it when we are ended. */
function run(root, command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
    const stop = (signal) => child.kill(signal)
    // Should we be killed, the lock holds for as long as the child still works.
    if (child.pid !== undefined) noteWorker(lockPath(root), child.pid)
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
    const finish = (error) => {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      if (error === undefined) resolve()
      else reject(error)
    }
    child.on('error', (error) => finish(new Error(`${command} did not start: ${error.message}`)))
    child.on('exit', (code, signal) => {
      const failure = `${command} ${args[0]} failed with ${signal ?? `exit code ${code}`}`
      finish(code === 0 ? undefined : new Error(failure))
    })
  })
}

function npmCommand() {
  return process.platform === 'win32' ? 'npm.cmd' : 'npm'
}

function readOrEmpty(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Not there: not done yet.
    return ''
  }
}

function say(text) {
  process.stderr.write(`sluice set-up: ${text}\n`)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await setUp()
  } catch (error) {
    say(error.message)
    process.exitCode = 1
  }
}
