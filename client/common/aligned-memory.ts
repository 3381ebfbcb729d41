// Memory for direct IO, which the system takes only when it begins at a block's boundary. Node has no
// call for that, but the memory of a WebAssembly instance begins at a page of its own. That is how it
// is, not what anybody promises: where it can't be had so, ordinary memory serves, and direct files
// copy through a buffer of theirs that is aligned, or give up and are buffered.

/** What positions, lengths and memory of direct IO are multiples of: no disk wants more. */
export const directBlockBytes = 4096

const wasmPageBytes = 65_536

interface WasmMemory {
  readonly buffer: ArrayBuffer
}

type WasmMemoryConstructor = new (size: { initial: number; maximum: number }) => WasmMemory

const aligned = new WeakSet<ArrayBufferLike>()

/** Zeros, aligned where this Node can; given back when nothing refers to it any more. */
export function alignedMemory(
  byteLength: number,
  Memory: WasmMemoryConstructor | undefined = wasmMemory(),
): Uint8Array {
  const pages = Math.ceil(byteLength / wasmPageBytes)
  try {
    if (Memory !== undefined) {
      const { buffer } = new Memory({ initial: pages, maximum: pages })
      aligned.add(buffer)
      return new Uint8Array(buffer, 0, byteLength)
    }
  } catch {
    // Each takes gigabytes of addresses, of which a process may be allowed few.
  }
  return new Uint8Array(new ArrayBuffer(byteLength))
}

/** Whether direct IO takes these bytes. */
export function isAligned(bytes: Uint8Array): boolean {
  return (
    aligned.has(bytes.buffer) &&
    bytes.byteOffset % directBlockBytes === 0 &&
    bytes.byteLength % directBlockBytes === 0
  )
}

export function alignDown(position: number): number {
  return position - (position % directBlockBytes)
}

export function alignUp(position: number): number {
  return alignDown(position + directBlockBytes - 1)
}

/** Not among the types, which are those of no browser. */
function wasmMemory(): WasmMemoryConstructor | undefined {
  const { WebAssembly } = globalThis as unknown as {
    readonly WebAssembly?: { readonly Memory?: WasmMemoryConstructor }
  }
  return WebAssembly?.Memory
}
