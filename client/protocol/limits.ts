// The bounds of the protocol: what a peer may send at most, each with its reason. A frame past one
// of them is a PROTOCOL error that ends the connection. WIRE.md is made from this table.

interface Limit {
  readonly value: number
  readonly reason: string
}

function limit(value: number, reason: string): Limit {
  return { value, reason }
}

export const limitTable = {
  headerLengthMax: limit(
    16_384,
    'The longest header of this version (Error: text and detail) takes 3.1 KiB; five times that for fields that newer versions append.',
  ),
  controlBodyLengthMax: limit(
    1_048_576,
    'A list longer than this goes in several frames; held in memory only while it is decoded.',
  ),
  dataBodyLengthMax: limit(
    1_048_576,
    'Four times the largest buffer size that a worker may be configured with; a data set lowers it to its own.',
  ),
  textLengthMax: limit(1_000, 'A sentence for people: what was wrong, where, what to do.'),
  detailLengthMax: limit(2_000, 'The fields of one error as JSON: three ids of 200 and figures.'),
  challengeLengthMax: limit(64, 'Twice the 32 random bytes that this version sends.'),
  partitionListEntriesMax: limit(
    16_384,
    'Entries in one AddPartitions or Describe frame: an entry can take a single byte on the wire and a hundred in memory.',
  ),
  queuedBytesBound: limit(
    4_194_304,
    'Bytes that wait in one connection before its senders are asked to pause: several sweeps of reads, little beside the pool.',
  ),
  outgoingControlBytesMax: limit(
    8_388_608,
    'Answers (frames without a body) that wait because the peer does not read: past it the peer is disconnected. Data is bounded by credit instead, lists and pages by their senders.',
  ),
} as const satisfies Record<string, Limit>

export const headerLengthMax = limitTable.headerLengthMax.value
export const controlBodyLengthMax = limitTable.controlBodyLengthMax.value
export const dataBodyLengthMax = limitTable.dataBodyLengthMax.value
export const textLengthMax = limitTable.textLengthMax.value
export const detailLengthMax = limitTable.detailLengthMax.value
export const challengeLengthMax = limitTable.challengeLengthMax.value
export const partitionListEntriesMax = limitTable.partitionListEntriesMax.value
export const queuedBytesBound = limitTable.queuedBytesBound.value
export const outgoingControlBytesMax = limitTable.outgoingControlBytesMax.value
