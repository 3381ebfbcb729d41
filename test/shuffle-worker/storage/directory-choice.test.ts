import { describe, expect, it } from 'vitest'
import { DirectoryChoice } from '../../../shuffle-worker/storage/directory-choice.ts'
import type {
  DirectoryStatus,
  DiskKind,
  StorageDirectoryView,
} from '../../../shuffle-worker/storage/storage-types.ts'

function directory(
  path: string,
  kind: DiskKind,
  status: Partial<DirectoryStatus> = {},
): StorageDirectoryView {
  const whole: DirectoryStatus = {
    index: 0,
    path,
    kind,
    health: 'healthy',
    isFull: false,
    totalBytes: 1000,
    availableBytes: 1000,
    partitionCount: 0,
    partitionBytes: 0,
    ...status,
  }
  const { health } = whole
  return { index: 0, path, kind, health, limits: { reads: 1, writes: 1 }, status: () => whole }
}

function chosen(choice: DirectoryChoice<StorageDirectoryView>, bytes = 0): string {
  return choice
    .candidates(bytes)
    .map((each) => each.path)
    .join(' ')
}

describe('the choice of a directory', () => {
  it('goes round among the preferred kind, the others after it', () => {
    const choice = new DirectoryChoice(
      [directory('a', 'ssd'), directory('h', 'hdd'), directory('b', 'ssd')],
      'ssd',
    )
    expect([chosen(choice), chosen(choice), chosen(choice)]).toEqual(['a b h', 'b a h', 'a b h'])
  })

  it('leaves out what is suspect, full or too small', () => {
    const choice = new DirectoryChoice(
      [
        directory('suspect', 'ssd', { health: 'suspect' }),
        directory('full', 'ssd', { isFull: true }),
        directory('small', 'ssd', { availableBytes: 10 }),
        directory('good', 'hdd'),
      ],
      'ssd',
    )
    expect(chosen(choice, 500)).toBe('good')
  })

  it('says whether health or space is short', () => {
    const sick = new DirectoryChoice([directory('a', 'ssd', { health: 'failed' })], 'ssd')
    expect(() => sick.candidates(0)).toThrow(/healthy/)
    const full = new DirectoryChoice([directory('a', 'ssd')], 'ssd')
    expect(() => full.candidates(2000)).toThrow(/room for 2000 bytes/)
  })
})
