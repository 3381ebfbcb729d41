// Writes a tar archive of texts: what a support bundle is, so that any machine can open it.

const blockBytes = 512

export interface ArchivedFile {
  /** Relative, of at most 100 bytes. */
  readonly name: string
  readonly content: string
}

/** In the format ustar, all files with the same owner and time. */
export function tarOf(files: readonly ArchivedFile[], wallMs: number): Buffer {
  const parts: Buffer[] = []
  for (const { name, content } of files) {
    const bytes = Buffer.from(content)
    const rest = (blockBytes - (bytes.length % blockBytes)) % blockBytes
    parts.push(headerOf(name, bytes.length, wallMs), bytes, Buffer.alloc(rest))
  }
  // Two empty blocks end it.
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)])
}

function headerOf(name: string, size: number, wallMs: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`${name} is too long for a tar archive`)
  const header = Buffer.alloc(blockBytes)
  const octal = (value: number, length: number) => value.toString(8).padStart(length - 1, '0')
  header.write(name, 0)
  header.write(octal(0o644, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(size, 12), 124)
  header.write(octal(Math.floor(wallMs / 1000), 12), 136)
  // The checksum is made with spaces in its own place.
  header.write(' '.repeat(8), 148)
  header.write('0', 156)
  header.write('ustar\u000000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 7)}\u0000 `, 148)
  return header
}
