// Seam: disks, in the shape that the fast path needs: positional gathered IO. Paths are absolute
// and made by the caller; nothing here ever comes from a peer's text.

export interface FileStatus {
  readonly sizeBytes: number
  readonly isDirectory: boolean
}

export interface SpaceStatus {
  readonly freeBytes: number
  readonly totalBytes: number
  /** The same for paths that share this space, on any machine; undefined where it can't be known. */
  readonly fileSystem?: string | undefined
}

/**
 * `create`: a new file for reading and writing, EEXIST when there is one.
 * `read`: an existing file, reading only. `update`: an existing file, reading and writing.
 */
export type OpenMode = 'create' | 'read' | 'update'

export interface OpenOptions {
  /**
   * Past the page cache. Then memory, length and position of each read and write are multiples of
   * `directBlockBytes` (see aligned-memory.ts), or it fails with EINVAL; where the file system can't
   * do it, opening or the first call fails so. A file that ends within a block is read up to its end.
   */
  readonly isDirect?: boolean
}

/** An open file. Errors are the system's, with `code` (EIO, ENOSPC, …). */
export interface DiskFile {
  /** Writes all parts at `position`; short writes are continued until all is written, or rejects. */
  write(parts: readonly Uint8Array[], position: number): Promise<void>
  /** Fills `target` from `position` on; resolves to the bytes read, fewer only at the end of the file. */
  read(target: Uint8Array, position: number): Promise<number>
  /** Makes the content durable. */
  sync(): Promise<void>
  truncate(sizeBytes: number): Promise<void>
  sizeBytes(): Promise<number>
  /** Closing can fail. Exactly once. */
  close(): Promise<void>
}

export interface DirectoryLock {
  release(): Promise<void>
}

export interface Disk {
  open(path: string, mode: OpenMode, options?: OpenOptions): Promise<DiskFile>
  rename(from: string, to: string): Promise<void>
  /** ENOENT when there is no such file. */
  unlink(path: string): Promise<void>
  /** Recursive; no error when it exists. */
  makeDirectory(path: string): Promise<void>
  /** Names in a directory, without order. */
  list(path: string): Promise<string[]>
  /** Undefined when nothing has that path. */
  status(path: string): Promise<FileStatus | undefined>
  /** Makes creations, renames and removals in this directory durable. */
  syncDirectory(path: string): Promise<void>
  space(path: string): Promise<SpaceStatus>
  /**
   * Takes the directory for this process; undefined when a running process holds it. A lock of a
   * process that is gone is taken over.
   */
  lock(path: string): Promise<DirectoryLock | undefined>
  /**
   * Identity of the running system since its last boot, or undefined where it can't be known. Data
   * that was not synced is believed only while this stays the same.
   */
  bootId(): Promise<string | undefined>
}
