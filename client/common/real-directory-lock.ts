// A lock on a directory that outlives no process. A claim is an empty file whose name says who holds
// it, so that it is complete the instant it exists and a dead holder's claim can be removed without
// ever removing a living one's:
//
//     .lock-<pid>-<start of the process>-<boot>-<random>
//
// Announce first, then look: of two that claim at once the later sees the earlier. Both may see each
// other and both withdraw; two never hold it. (Node has no flock.)

import { randomBytes } from 'node:crypto'
import { open, readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { DirectoryLock } from './disk.ts'

const claimPattern = /^\.lock-(\d+)-(\d+)-([0-9a-f]+)-[0-9a-f]+$/

/** Undefined when a running process, this one included, holds `directory`. */
export async function lockDirectory(directory: string): Promise<DirectoryLock | undefined> {
  const { boot, start } = await identityOf(process.pid)
  const random = randomBytes(8).toString('hex')
  const ours = `.lock-${String(process.pid)}-${start}-${boot}-${random}`
  const file = await open(join(directory, ours), 'wx')
  await file.close()
  for (const name of await readdir(directory)) {
    if (name === ours || !claimPattern.test(name)) continue
    if (await isHeld(name)) {
      await removeIfThere(join(directory, ours))
      return undefined
    }
    await removeIfThere(join(directory, name))
  }
  return { release: () => removeIfThere(join(directory, ours)) }
}

async function isHeld(claim: string): Promise<boolean> {
  const [, pidText, start, boot] = claimPattern.exec(claim) ?? []
  const pid = Number(pidText)
  if (!isRunning(pid)) return false
  const now = await identityOf(pid)
  return now.boot === boot && now.start === start
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs as somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** When the process began and in which boot: a process id alone comes back. Zeros where unknown. */
async function identityOf(pid: number): Promise<{ start: string; boot: string }> {
  const [stat, bootId] = await Promise.all([
    readOrEmpty(`/proc/${String(pid)}/stat`),
    readOrEmpty('/proc/sys/kernel/random/boot_id'),
  ])
  // The name of the program is in parentheses and may hold anything; the start is field 22.
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return { start: start ?? '0', boot: bootId.replace(/[^0-9a-f]/g, '').slice(0, 12) || '0' }
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    // No /proc on this system, or the process has just ended.
    return ''
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
