import { expect, it } from 'vitest'
import {
  dataPath,
  fileNameOf,
  layoutOf,
  parseFileName,
  partialPath,
  segmentPath,
} from '../../../shuffle-worker/storage/directory-layout.ts'

it('names of stored files are numbers and are read back', () => {
  const layout = layoutOf('/data')
  expect(partialPath(layout, 7)).toBe('/data/partitions/000000000007.partial')
  expect(dataPath(layout, 7)).toBe('/data/partitions/000000000007.data')
  expect(segmentPath(layout, 7)).toBe('/data/log/000000000007.segment')
  for (const kind of ['partial', 'data', 'segment'] as const) {
    expect(parseFileName(fileNameOf(2 ** 40, kind))).toEqual({ ordinal: 2 ** 40, kind })
  }
})

it.each(['7.data', '000000000007.tmp', '../000000000007.data', '00000000000a.data', ''])(
  'a name of another kind (%s) is no stored file',
  (name) => {
    expect(parseFileName(name)).toBeUndefined()
  },
)
