// Reads a gate to its end into a sorter.

import type { InputGate } from '../../client/index.ts'
import type { ExternalSorter } from '../sort/external-sorter.ts'
import type { TaskContext } from '../task.ts'

/** Adds each record of the gate to the sorter and gives every batch back. */
export async function sortRecords(
  gate: InputGate,
  sorter: ExternalSorter,
  context: TaskContext,
): Promise<void> {
  const add = (bytes: Uint8Array, start: number, end: number) => {
    sorter.add(bytes, start, end)
  }
  let byteCount = 0
  for (;;) {
    const batch = gate.pollBatch() ?? (await gate.nextBatch())
    if (batch === undefined) return
    try {
      if (batch.kind === 'records') {
        batch.forEach(add)
        byteCount += batch.byteCount
        context.progress(byteCount)
      }
    } finally {
      batch.recycle()
    }
  }
}
