// The frame around every message. `length` counts everything after itself, so that a receiver that
// doesn't know a type or a channel skips exactly that many bytes and the connection lives on.
// Big-endian.
//
//   0        4      5       6              8           12
//   | length | type | flags | headerLength | channelId | header … | body … |
//
// flags: 0 in this version; a receiver ignores them.

/** Bytes before the header. */
export const framePrefixLength = 12

/** What `length` counts beside header and body. */
export const frameLengthMin = framePrefixLength - 4
