package org.sluice.flink.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/**
 * Makes and checks the checksums of one partition's entries: CRC32 over the identity of the entry
 * and then its payload as stored.
 *
 * <pre>
 *   0            4        8              12         16       20      21     22       24
 *   | key CRC32  | region | subpartition | position | length | flags | type | 0 (u16) |
 * </pre>
 */
public final class EntryChecksum {
  private static final int IDENTITY_LENGTH = 24;

  private final CRC32 crc = new CRC32();
  private final ByteBuffer identity = ByteBuffer.allocate(IDENTITY_LENGTH);

  public EntryChecksum(PartitionKey key) {
    crc.update(key.toString().getBytes(StandardCharsets.ISO_8859_1));
    identity.putInt(0, (int) crc.getValue());
  }

  /** The subpartition is that of the header: the broadcast mark, not the one served. */
  public int of(
      int regionIndex, int subpartition, int position, int flags, int type, ByteBuffer payload) {
    identity.putInt(4, regionIndex);
    identity.putInt(8, subpartition);
    identity.putInt(12, position);
    identity.putInt(16, payload.remaining());
    identity.put(20, (byte) flags);
    identity.put(21, (byte) type);
    crc.reset();
    crc.update(identity.array(), 0, IDENTITY_LENGTH);
    crc.update(payload);
    return (int) crc.getValue();
  }
}
