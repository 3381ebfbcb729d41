// Errors on the wire: the fields that Error and PartitionFailed share, made from a ShuffleError and
// back.

import { errorCodeOfWire, type ErrorFields, errorTable, ShuffleError } from '../common/errors.ts'
import { detailLengthMax, textLengthMax } from './limits.ts'

export interface WireErrorFields {
  readonly code: number
  readonly isRetryable: boolean
  readonly text: string
  readonly detail: string
}

/** The fields that tell a peer of `error`; a text or detail that is too long is cut or left out. */
export function wireErrorFields(error: ShuffleError): WireErrorFields {
  const detail = JSON.stringify(error.fields)
  return {
    code: errorTable[error.code].wireCode,
    isRetryable: error.isRetryable,
    text: cut(error.message, textLengthMax),
    detail: detail === '{}' || Buffer.byteLength(detail) > detailLengthMax ? '' : detail,
  }
}

/** The error that a peer told of. A code that this version doesn't know becomes PROTOCOL. */
export function errorOfWire(fields: WireErrorFields): ShuffleError {
  return new ShuffleError(errorCodeOfWire(fields.code) ?? 'PROTOCOL', fields.text, {
    fields: { ...detailFields(fields.detail), wireCode: fields.code, fromPeer: true },
  })
}

function detailFields(detail: string): ErrorFields {
  try {
    const parsed: unknown = JSON.parse(detail === '' ? '{}' : detail)
    return Object.fromEntries(
      Object.entries(parsed ?? {}).filter(([, value]) =>
        ['string', 'number', 'boolean'].includes(typeof value),
      ),
    )
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return {}
  }
}

/** The longest beginning of `text` that takes at most `lengthMax` bytes of UTF-8. */
function cut(text: string, lengthMax: number): string {
  if (Buffer.byteLength(text) <= lengthMax) return text
  let end = 0
  let length = 0
  for (const character of text) {
    length += Buffer.byteLength(character)
    if (length > lengthMax) break
    end += character.length
  }
  return text.slice(0, end)
}
