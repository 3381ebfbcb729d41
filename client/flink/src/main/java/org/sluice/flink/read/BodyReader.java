package org.sluice.flink.read;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Wire;

/**
 * Walks over the segments of one body of data and the entries in them, one entry a step. Every entry
 * is checked before anything of it is handed on. Data that is not compressed is not copied. Belongs
 * to the task thread.
 */
final class BodyReader {
  private static final int FLAGS_KNOWN = Wire.FLAG_COMPRESSED | Wire.FLAG_LAST_OF_RUN;

  private final ReadChannel channel;
  private final NetworkBuffer buffer;
  private final Uncompressor uncompressor;
  private final ReadyItems ready;
  private final MemorySegment memory;
  private final ByteBuffer bytes;
  private final int end;
  private int next;
  private int segmentEnd;
  private InputPartition partition;
  private int region;
  private int served;

  BodyReader(GateQueue.Body body, Uncompressor uncompressor, ReadyItems ready) {
    this.channel = body.channel;
    this.buffer = body.buffer;
    this.uncompressor = uncompressor;
    this.ready = ready;
    this.memory = buffer.getMemorySegment();
    this.bytes = memory.wrap(0, memory.size());
    this.end = buffer.getSize();
  }

  /** False when nothing is left; else something may have become ready. */
  boolean step() throws IOException, BadEntry {
    if (next == segmentEnd) {
      if (next == end) {
        return false;
      }
      enterSegment();
      if (partition == null) {
        // It failed while this was under way.
        next = segmentEnd;
        return true;
      }
      enterRun();
    }
    try {
      readEntry();
    } catch (ShuffleException error) {
      throw new BadEntry(partition, error);
    }
    return true;
  }

  /** What came is not what the producer wrote; nothing more of this body is of use. */
  static final class BadEntry extends Exception {
    private static final long serialVersionUID = 1L;

    final transient InputPartition partition;
    final ShuffleException error;

    BadEntry(InputPartition partition, ShuffleException error) {
      super(error);
      this.partition = partition;
      this.error = error;
    }
  }

  private void enterSegment() throws IOException {
    if (end - next < Wire.SEGMENT_HEADER_LENGTH) {
      throw malformed("a segment's header is cut off");
    }
    partition = channel.listed(memory.getIntBigEndian(next) & 0xffff_ffffL);
    region = memory.getIntBigEndian(next + 4);
    served = memory.getIntBigEndian(next + 8);
    int length = memory.getIntBigEndian(next + 12);
    next += Wire.SEGMENT_HEADER_LENGTH;
    if (length < Wire.ENTRY_HEADER_LENGTH || length > end - next) {
      throw malformed("a segment's length does not fit");
    }
    segmentEnd = next + length;
  }

  private void enterRun() throws BadEntry {
    try {
      partition.enterRun(region, served);
    } catch (ShuffleException error) {
      throw new BadEntry(partition, error);
    }
  }

  private void readEntry() throws IOException {
    if (segmentEnd - next < Wire.ENTRY_HEADER_LENGTH) {
      throw partition.corrupt("an entry's header is cut off");
    }
    int length = memory.getIntBigEndian(next);
    int start = next + Wire.ENTRY_HEADER_LENGTH;
    if (length < 0 || length > segmentEnd - start) {
      throw partition.corrupt("an entry's length does not fit");
    }
    int flags = memory.get(next + 8);
    int type = memory.get(next + 9) & 0xff;
    if ((flags & ~FLAGS_KNOWN) != 0 || memory.getShortBigEndian(next + 10) != 0) {
      throw partition.corrupt("a reserved bit of an entry is set");
    }
    int subpartition = memory.getIntBigEndian(next + 4);
    int sum = memory.getIntBigEndian(next + 12);
    ByteBuffer payload = bytes.duplicate();
    payload.limit(start + length).position(start);
    partition.accept(subpartition, flags, type, sum, payload);
    next = start + length;
    if (type != Wire.TYPE_DATA) {
      payload.limit(start + length).position(start);
      ready.addEvent(partition, payload, type);
    } else if ((flags & Wire.FLAG_COMPRESSED) != 0) {
      ready.addData(partition, uncompressor.uncompress(partition, bytes, start, length));
    } else if (length > 0) {
      buffer.retainBuffer();
      ready.addData(partition, buffer.readOnlySlice(start, length));
    }
  }

  void release() {
    buffer.recycleBuffer();
  }

  private ShuffleException malformed(String what) {
    return new ShuffleException(
        ErrorCode.PROTOCOL, "worker " + channel.reader.worker + ": " + what);
  }
}
