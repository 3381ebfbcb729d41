import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tarOf } from '../../cli/tar.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

test('an archive is what tar unpacks, whatever the lengths', async () => {
  await withTemporaryDirectory((directory) => {
    const files = [0, 1, 511, 512, 513, 5000].map((length) => ({
      name: `a/${length}.txt`,
      content: 'ä'.repeat(length),
    }))
    writeFileSync(join(directory, 'x.tar'), tarOf(files, 1_700_000_000_000))
    execFileSync('tar', ['--extract', '--file', 'x.tar'], { cwd: directory })
    for (const { name, content } of files) {
      expect(readFileSync(join(directory, name), 'utf8')).toBe(content)
    }
    return Promise.resolve()
  })
})

test('a name that does not fit is refused', () => {
  expect(() => tarOf([{ name: 'x'.repeat(101), content: '' }], 0)).toThrow(/too long/)
})
