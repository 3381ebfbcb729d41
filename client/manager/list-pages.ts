// Long lists in pages: each below the body limit, whatever the lengths of the ids in it.

import type { AttemptColumns } from './key-columns.ts'
import { bodyBytesMax, pageEntriesMax } from './schemas.ts'

/** Rows of one group: with the longest ids, of characters that JSON writes as two, still within a page. */
export const groupRowsMax = 4_000

/** What is around the groups of a page: a list of data sets or workers has its own page limit. */
const pageBytesMax = bodyBytesMax * 0.75

/** Pages of groups, in order; at least one page, which may be empty. */
export function pagesOfGroups<Group extends AttemptColumns>(groups: readonly Group[]): Group[][] {
  let page: Group[] = []
  const pages = [page]
  let bytes = 0
  let entries = 0
  for (const group of groups) {
    // As it is sent: a quotation mark in an id takes two bytes. The comma is one more.
    const size = Buffer.byteLength(JSON.stringify(group)) + 1
    const count = group.partitionIndices.length
    if (page.length > 0 && (bytes + size > pageBytesMax || entries + count > pageEntriesMax)) {
      page = []
      pages.push(page)
      bytes = 0
      entries = 0
    }
    page.push(group)
    bytes += size
    entries += count
  }
  return pages
}
