// fio beside our own reference, where it is installed: the same files, request size, depth and mode.

import { execFile } from 'node:child_process'
import { rm, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { type DiskShape, fileBytesOf } from './disk-reference.ts'
import { megabyte } from './series.ts'

const run = promisify(execFile)
const outputBytesMax = 16 * 1024 * 1024

export async function isFioInstalled(): Promise<boolean> {
  return run('fio', ['--version']).then(
    () => true,
    () => false,
  )
}

/** MB/s. An append makes files of its own and removes them; a read takes those of the reference. */
export async function runFio(kind: 'append' | 'read', shape: DiskShape): Promise<number> {
  const isAppend = kind === 'append'
  const directory = isAppend ? path.join(shape.directory, 'fio') : shape.directory
  if (isAppend) await mkdir(directory, { recursive: true })
  try {
    const { stdout } = await run('fio', argumentsOf(kind, { ...shape, directory }), {
      maxBuffer: outputBytesMax,
    })
    return bandwidthOf(stdout, kind)
  } finally {
    if (isAppend) await rm(directory, { recursive: true })
  }
}

export function argumentsOf(kind: 'append' | 'read', shape: DiskShape): string[] {
  const total = fileBytesOf(shape) * shape.fileCount
  return [
    '--name=reference',
    `--directory=${shape.directory}`,
    '--filename_format=file-$filenum',
    `--nrfiles=${String(shape.fileCount)}`,
    `--openfiles=${String(shape.fileCount)}`,
    `--size=${String(total)}`,
    `--bs=${String(shape.requestBytes)}`,
    `--iodepth=${String(shape.depth)}`,
    `--direct=${shape.isDirect ? '1' : '0'}`,
    '--ioengine=libaio',
    '--file_service_type=roundrobin',
    '--output-format=json',
    ...(kind === 'append'
      ? ['--rw=write', '--fallocate=none', '--create_on_open=1', '--end_fsync=1']
      : ['--rw=read', '--invalidate=1']),
  ]
}

/** Of fio's JSON; its own warnings may stand before it. */
export function bandwidthOf(output: string, kind: 'append' | 'read'): number {
  const report = JSON.parse(output.slice(output.indexOf('{'))) as {
    readonly jobs: readonly Record<'read' | 'write', { readonly bw_bytes: number }>[]
  }
  const job = report.jobs[0]
  if (job === undefined) throw new Error('fio reported no job')
  return job[kind === 'append' ? 'write' : 'read'].bw_bytes / megabyte
}
