package org.sluice.flink.wire;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes values as they stand on the wire. */
final class HeaderWriter {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream(128);

  void u8(int value) {
    out.write(value);
  }

  void u16(int value) {
    out.write(value >>> 8);
    out.write(value);
  }

  void u32(long value) {
    u16((int) (value >>> 16));
    u16((int) value);
  }

  void u64(long value) {
    u32(value >>> 32);
    u32(value);
  }

  void bytes(byte[] value) {
    u16(value.length);
    out.write(value, 0, value.length);
  }

  void raw(byte[] value, int length) {
    out.write(value, 0, length);
  }

  void text(String value, int lengthMax) {
    byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
    if (encoded.length > lengthMax) {
      throw new IllegalArgumentException("a text of " + encoded.length + " bytes passes " + lengthMax);
    }
    bytes(encoded);
  }

  void id(String value) {
    bytes(PartitionKey.checkId(value).getBytes(StandardCharsets.ISO_8859_1));
  }

  void optionalId(String value) {
    if (value == null) {
      u16(0);
    } else {
      id(value);
    }
  }

  void partitionKey(PartitionKey key) {
    id(key.jobId());
    id(key.dataSetId());
    u32(key.partitionIndex());
    id(key.attemptId());
  }

  void allocationId(AllocationId allocation) {
    u64(allocation.managerEpoch());
    u64(allocation.jobEpoch());
    u64(allocation.sequence());
  }

  int length() {
    return out.size();
  }

  byte[] toByteArray() {
    return out.toByteArray();
  }
}
