// The fields that Error and PartitionFailed share.

import { field } from './define-message.ts'
import { boolean, text, uint16 } from './field-types.ts'
import { detailLengthMax, textLengthMax } from './limits.ts'

export const errorFields = {
  code: field(uint16, 'Code of the error table; a number not in it counts as PROTOCOL.'),
  isRetryable: field(boolean, 'Whether the same call may succeed when repeated.'),
  text: field(text(textLengthMax), 'For people: what was wrong, where, what to do.'),
  detail: field(text(detailLengthMax), 'Empty, or a JSON object of scalar fields; may be skipped.'),
}
