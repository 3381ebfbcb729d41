import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { lockDirectory } from '../../../client/common/real-directory-lock.ts'
import { withTemporaryDirectory } from '../../support/temporary-directory.ts'

const lockModule = fileURLToPath(
  new URL('../../../client/common/real-directory-lock.ts', import.meta.url),
)

/** A process that takes the lock, says whether it has it, and stays until it is killed. */
async function locker(directory: string): Promise<{ child: ChildProcess; hasLock: boolean }> {
  const script = `
    import { lockDirectory } from ${JSON.stringify(lockModule)}
    const lock = await lockDirectory(process.argv[1])
    console.log(lock === undefined ? 'refused' : 'locked')
    process.stdin.resume()`
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script, directory],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, hasLock: line.toString().trim() === 'locked' }
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

test('a lock of a running process holds, and that of a killed one is taken over', async () => {
  await withTemporaryDirectory(async (directory) => {
    const { child, hasLock } = await locker(directory)
    try {
      expect(hasLock).toBe(true)
      expect(await lockDirectory(directory)).toBeUndefined()
    } finally {
      await kill(child)
    }
    const lock = await lockDirectory(directory)
    expect(lock).toBeDefined()
    await lock?.release()
    expect(await readdir(directory)).toEqual([])
  })
})

test('of many that claim at once at most one gets it, and no claim is left behind', async () => {
  await withTemporaryDirectory(async (directory) => {
    for (let round = 0; round < 20; round += 1) {
      const claims = Array.from({ length: 8 }, () => lockDirectory(directory))
      const locks = (await Promise.all(claims)).filter((lock) => lock !== undefined)
      expect(locks.length).toBeLessThanOrEqual(1)
      await Promise.all(locks.map((lock) => lock.release()))
      expect(await readdir(directory)).toEqual([])
    }
  })
})

test('a claim whose process id now belongs to another process is void', async () => {
  await withTemporaryDirectory(async (directory) => {
    const claim = `.lock-${String(process.pid)}-1-0-0123456789abcdef`
    await writeFile(join(directory, claim), '')
    const lock = await lockDirectory(directory)
    expect(lock).toBeDefined()
    expect(await readdir(directory)).not.toContain(claim)
    await lock?.release()
  })
})

test('other files of the directory are left alone, and a release twice does no harm', async () => {
  await withTemporaryDirectory(async (directory) => {
    for (const name of ['data', '.lock-', '.lock-x-y-z-0']) {
      await writeFile(join(directory, name), '')
    }
    const lock = await lockDirectory(directory)
    await lock?.release()
    await lock?.release()
    expect((await readdir(directory)).sort()).toEqual(['.lock-', '.lock-x-y-z-0', 'data'])
  })
})
