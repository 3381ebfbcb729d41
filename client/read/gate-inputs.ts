// What an InputGate accepts as its inputs, checked before anything is opened.

import { ShuffleError } from '../common/errors.ts'
import type { ShuffleDescriptor } from '../master/shuffle-descriptor.ts'

export interface GateInputRange {
  readonly descriptor: ShuffleDescriptor
  readonly firstSubpartition: number
  readonly lastSubpartition: number
  readonly isPending: boolean
}

/** One channel and as much again, so that data flows while the consumer holds some. */
export const gateBuffersMin = 4

/** A gate without inputs has no data set to ask. */
const bufferSizeWithoutInputs = 32_768

/**
 * The buffer size of the gate's pool: the largest of its inputs. Throws INVALID_ARGUMENT or
 * UNSUPPORTED_CODEC naming the first input that cannot be read; `bufferSizeMax`, when given, is the
 * size of a pool that already exists.
 */
export function checkInputs(
  inputs: readonly GateInputRange[],
  memoryBytes: number,
  bufferSizeMax = Infinity,
): number {
  let bufferSizeBytes = 0
  for (const input of inputs) {
    checkInput(input, bufferSizeMax)
    bufferSizeBytes = Math.max(bufferSizeBytes, input.descriptor.bufferSizeBytes)
  }
  if (memoryBytes < gateBuffersMin * bufferSizeBytes) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `an input gate needs ${String(gateBuffersMin * bufferSizeBytes)} bytes of memory, ${String(gateBuffersMin)} buffers; it was given ${String(memoryBytes)}`,
      { fields: { memoryBytes, bufferSizeBytes } },
    )
  }
  return bufferSizeBytes === 0 ? bufferSizeWithoutInputs : bufferSizeBytes
}

function checkInput(input: GateInputRange, bufferSizeMax: number): void {
  const { descriptor, firstSubpartition, lastSubpartition } = input
  const { codec, subpartitionCount, holders, bufferSizeBytes } = descriptor
  if (codec !== 'lz4' && codec !== 'none') {
    throw new ShuffleError('UNSUPPORTED_CODEC', `this client reads lz4 and none, not ${codec}`, {
      fields: { ...descriptor.key, codec },
    })
  }
  const isRange =
    firstSubpartition >= 0 &&
    firstSubpartition <= lastSubpartition &&
    lastSubpartition < subpartitionCount
  if (!isRange || holders.length === 0 || bufferSizeBytes > bufferSizeMax) {
    throw new ShuffleError(
      'INVALID_ARGUMENT',
      `cannot read subpartitions ${String(firstSubpartition)} to ${String(lastSubpartition)} of ${String(subpartitionCount)}, in buffers of ${String(bufferSizeBytes)} bytes, from ${String(holders.length)} workers`,
      { fields: { ...descriptor.key } },
    )
  }
}
