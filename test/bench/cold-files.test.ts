import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, it } from 'vitest'
import { dropFromCache, filesBelow, syncFiles } from '../../bench/cold-files.ts'
import { withTemporaryDirectory } from '../support/temporary-directory.ts'

it('all files below are synced and dropped, and stay what they are', async () => {
  await withTemporaryDirectory(async (directory) => {
    await mkdir(path.join(directory, 'below'))
    const files = ['one', 'below/two words'].map((name) => path.join(directory, name))
    for (const file of files) await writeFile(file, 'content')
    expect((await filesBelow(directory)).sort()).toEqual([...files].sort())
    await syncFiles(directory)
    await dropFromCache(directory)
    expect((await filesBelow(directory)).length).toBe(2)
  })
})
