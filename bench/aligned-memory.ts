// Memory that begins at a page, as direct IO wants it. Node has no way to ask for it; the memory of a
// WebAssembly instance begins at a page of its own.

const wasmPageBytes = 65_536

interface WasmMemory {
  readonly buffer: ArrayBuffer
}

/** Touched, so that the first use of a page is not part of a measurement. */
export function alignedMemory(byteLength: number): Uint8Array {
  const pages = Math.ceil(byteLength / wasmPageBytes)
  const { Memory } = (
    globalThis as unknown as {
      readonly WebAssembly: {
        Memory: new (size: { initial: number; maximum: number }) => WasmMemory
      }
    }
  ).WebAssembly
  const bytes = new Uint8Array(new Memory({ initial: pages, maximum: pages }).buffer, 0, byteLength)
  for (let at = 0; at < byteLength; at += 4) bytes[at] = at * 2_654_435_761
  return bytes
}
