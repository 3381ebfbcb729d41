// Figures and tables for people.

/** Rows under a head; columns of numbers stand at the right. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  const isNumeric = head.map((_, column) =>
    rows.every((row) => /^[\d.,]+( \S+)?$|^-?$/.test(row[column] ?? '')),
  )
  const lines = all.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return isNumeric[column] === true ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `12.3 MiB`. */
export function humanBytes(bytes: number): string {
  let amount = bytes
  let unit = 0
  while (amount >= 1024 && unit < byteUnits.length - 1) {
    amount /= 1024
    unit += 1
  }
  return `${unit === 0 ? String(amount) : amount.toFixed(1)} ${byteUnits[unit] ?? ''}`
}

/** `1.2 s`, `3m 20s`, `2h 5m`. */
export function humanDuration(milliseconds: number): string {
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`
  const minutes = Math.floor(milliseconds / 60_000)
  if (minutes < 60) return `${minutes}m ${Math.floor((milliseconds % 60_000) / 1000)}s`
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}
