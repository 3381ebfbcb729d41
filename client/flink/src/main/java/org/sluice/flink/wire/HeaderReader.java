package org.sluice.flink.wire;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Reads values from bytes that a peer sent; whatever is malformed is a {@link ProtocolException}. */
final class HeaderReader {
  private static final long SAFE_MAX = (1L << 53) - 1;

  private final ByteBuffer bytes;
  private final String what;

  HeaderReader(byte[] bytes, int offset, int length, String what) {
    this.bytes = ByteBuffer.wrap(bytes, offset, length);
    this.what = what;
  }

  boolean isAtEnd() {
    return !bytes.hasRemaining();
  }

  int u8() {
    need(1);
    return bytes.get() & 0xff;
  }

  int u16() {
    need(2);
    return bytes.getShort() & 0xffff;
  }

  long u32() {
    need(4);
    return bytes.getInt() & 0xffff_ffffL;
  }

  long bits64() {
    need(8);
    return bytes.getLong();
  }

  long u64() {
    long value = bits64();
    if (value < 0 || value > SAFE_MAX) {
      throw fail("a number is larger than 2^53 - 1");
    }
    return value;
  }

  Long optionalU64() {
    long value = bits64();
    if (value == -1) {
      return null;
    }
    if (value < 0 || value > SAFE_MAX) {
      throw fail("a number is larger than 2^53 - 1");
    }
    return value;
  }

  boolean bool() {
    int value = u8();
    if (value > 1) {
      throw fail("a boolean is " + value);
    }
    return value == 1;
  }

  byte[] bytes(int lengthMax) {
    int length = u16();
    if (length > lengthMax) {
      throw fail("a field of " + length + " bytes is longer than " + lengthMax);
    }
    return raw(length);
  }

  String text(int lengthMax) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(lengthMax))).toString();
    } catch (CharacterCodingException error) {
      throw fail("a text is not UTF-8");
    }
  }

  String optionalId() {
    String text = new String(bytes(Wire.ID_LENGTH_MAX), StandardCharsets.ISO_8859_1);
    return text.isEmpty() ? null : PartitionKey.checkId(text);
  }

  String id() {
    String id = optionalId();
    if (id == null) {
      throw fail("an id is empty");
    }
    return id;
  }

  PartitionKey partitionKey() {
    return new PartitionKey(id(), id(), (int) u32(), id());
  }

  AllocationId allocationId() {
    return new AllocationId(u64(), u64(), u64());
  }

  /** Characters with a length of one byte before them. */
  String shortText() {
    return new String(raw(u8()), StandardCharsets.ISO_8859_1);
  }

  ProtocolException fail(String problem) {
    return new ProtocolException(what + ": " + problem);
  }

  private byte[] raw(int length) {
    need(length);
    byte[] value = new byte[length];
    bytes.get(value);
    return value;
  }

  private void need(int length) {
    if (bytes.remaining() < length) {
      throw fail("it ends inside a field");
    }
  }
}
