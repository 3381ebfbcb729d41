package org.sluice.flink.support;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.sluice.flink.wire.EntryChecksum;
import org.sluice.flink.wire.PartitionKey;
import org.sluice.flink.wire.Wire;

/** Makes bodies of ReadData and takes bodies of WriteData apart, by the letter of WIRE.md. */
public final class Entries {
  /** One entry of a body of WriteData. */
  public static final class Entry {
    public final int subpartition;
    public final int flags;
    public final int type;
    public final int sum;
    public final byte[] payload;

    Entry(ByteBuffer body) {
      int length = body.getInt();
      subpartition = body.getInt();
      flags = body.get();
      type = body.get();
      body.getShort();
      sum = body.getInt();
      payload = new byte[length];
      body.get(payload);
    }

    public boolean isLastOfRun() {
      return (flags & Wire.FLAG_LAST_OF_RUN) != 0;
    }

    public String text() {
      return new String(payload, StandardCharsets.UTF_8);
    }
  }

  public static List<Entry> of(byte[] body) {
    ByteBuffer bytes = ByteBuffer.wrap(body);
    List<Entry> entries = new ArrayList<>();
    while (bytes.hasRemaining()) {
      entries.add(new Entry(bytes));
    }
    return entries;
  }

  private final PartitionKey key;
  private final ByteArrayOutputStream body = new ByteArrayOutputStream();
  private ByteArrayOutputStream run = new ByteArrayOutputStream();
  private int listIndex;
  private int region;
  private int served;
  private int position;
  public int entryCount;
  public int byteCount;

  public Entries(PartitionKey key) {
    this.key = key;
  }

  /** What follows is of this run. */
  public Entries run(int index, int regionIndex, int subpartition) {
    return run(index, regionIndex, subpartition, 0);
  }

  /** What follows is of this run, which goes on at a position. */
  public Entries run(int index, int regionIndex, int subpartition, int firstPosition) {
    endSegment();
    listIndex = index;
    region = regionIndex;
    served = subpartition;
    position = firstPosition;
    return this;
  }

  public Entries data(String text, boolean isLast) {
    return entry(text.getBytes(StandardCharsets.UTF_8), Wire.TYPE_DATA, 0, isLast);
  }

  public Entries event(AbstractEvent event, int type, boolean isLast) throws IOException {
    ByteBuffer bytes = EventSerializer.toSerializedEvent(event);
    byte[] payload = new byte[bytes.remaining()];
    bytes.get(payload);
    return entry(payload, type, 0, isLast);
  }

  public Entries entry(byte[] payload, int type, int flags, boolean isLast) {
    int all = flags | (isLast ? Wire.FLAG_LAST_OF_RUN : 0);
    int sum =
        new EntryChecksum(key)
            .of(region, served, position++, all, type, ByteBuffer.wrap(payload));
    ByteBuffer header = ByteBuffer.allocate(Wire.ENTRY_HEADER_LENGTH);
    header.putInt(payload.length).putInt(served).put((byte) all).put((byte) type);
    header.putShort((short) 0).putInt(sum);
    run.writeBytes(header.array());
    run.writeBytes(payload);
    entryCount++;
    byteCount += Wire.ENTRY_HEADER_LENGTH + payload.length;
    return this;
  }

  private void endSegment() {
    if (run.size() == 0) {
      return;
    }
    ByteBuffer header = ByteBuffer.allocate(Wire.SEGMENT_HEADER_LENGTH);
    header.putInt(listIndex).putInt(region).putInt(served).putInt(run.size());
    body.writeBytes(header.array());
    body.writeBytes(run.toByteArray());
    run = new ByteArrayOutputStream();
  }

  /** All since the last one. */
  public byte[] body() {
    endSegment();
    byte[] bytes = body.toByteArray();
    body.reset();
    return bytes;
  }
}
