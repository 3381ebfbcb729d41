package org.sluice.flink.write;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.runtime.io.network.buffer.BufferRecycler;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.sluice.flink.BlockCodec;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.wire.EntryChecksum;
import org.sluice.flink.wire.Wire;

/**
 * Makes entries of the pieces of a region and packs them into bodies of one buffer each. Entries of
 * a run, that is of one subpartition, follow each other; the last one says so. Used by the task
 * thread alone.
 */
final class RegionWriter {
  /** Below it compression gains too little. */
  private static final int COMPRESSED_BYTES_MIN = 128;

  private final SortBuffer.SegmentSource segments;
  private final BufferRecycler recycler;
  private final WriteChannel channel;
  private final EntryChecksum checksum;
  private final BlockCodec codec;
  private final int bufferSize;
  private final int payloadMax;
  private final byte[] payload;
  private final byte[] packed;
  private final ByteBuffer packedView;

  private MemorySegment body;
  private int bodyLength;
  private int bodyEntries;
  private int position;

  RegionWriter(
      SluiceShuffleDescriptor descriptor,
      WriteChannel channel,
      SortBuffer.SegmentSource segments,
      BufferRecycler recycler)
      throws IOException {
    this.channel = channel;
    this.segments = segments;
    this.recycler = recycler;
    this.checksum = new EntryChecksum(descriptor.key());
    this.bufferSize = descriptor.bufferSizeBytes();
    this.payloadMax = bufferSize - Wire.ENTRY_RESERVE_BYTES;
    this.codec = BlockCodec.of(descriptor.codec(), payloadMax);
    this.payload = new byte[payloadMax];
    this.packed = new byte[payloadMax];
    this.packedView = ByteBuffer.wrap(packed);
  }

  /** The most that data and events of a run can take as entries. */
  long boundBytes(long dataBytes, int eventCount, long eventBytes) {
    // Every event may end an entry of data before its time.
    long dataEntries = (dataBytes + payloadMax - 1) / payloadMax + eventCount;
    return dataBytes + eventBytes + (dataEntries + eventCount) * Wire.ENTRY_HEADER_LENGTH;
  }

  int payloadMax() {
    return payloadMax;
  }

  void startRegion(boolean isBroadcast, long boundBytes) throws IOException, InterruptedException {
    channel.startRegion(isBroadcast, boundBytes);
  }

  void startRun() {
    position = 0;
  }

  /** Where data comes from. */
  interface Source {
    void read(byte[] target, int length);
  }

  /** Data of the present run, as many entries as it takes. */
  void writeData(Source source, long byteCount, int subpartition, boolean isEndOfRun)
      throws IOException, InterruptedException {
    long left = byteCount;
    while (left > 0) {
      int length = (int) Math.min(left, payloadMax);
      source.read(payload, length);
      left -= length;
      writePayload(length, Wire.TYPE_DATA, subpartition, isEndOfRun && left == 0);
    }
  }

  /** One event, as one entry. */
  void writeEvent(ByteBuffer event, int type, int subpartition, boolean isEndOfRun)
      throws IOException, InterruptedException {
    int length = event.remaining();
    event.duplicate().get(payload, 0, length);
    writePayload(length, type, subpartition, isEndOfRun);
  }

  private void writePayload(int length, int type, int subpartition, boolean isEndOfRun)
      throws IOException, InterruptedException {
    int flags = isEndOfRun ? Wire.FLAG_LAST_OF_RUN : 0;
    byte[] stored = payload;
    int storedLength = length;
    if (codec != null && type == Wire.TYPE_DATA && length >= COMPRESSED_BYTES_MIN) {
      int blockLength = codec.compress(payload, length);
      if (Wire.COMPRESSED_PREFIX_LENGTH + blockLength < length) {
        packedView.putInt(0, length);
        codec.copyBlock(packed, Wire.COMPRESSED_PREFIX_LENGTH, blockLength);
        stored = packed;
        storedLength = Wire.COMPRESSED_PREFIX_LENGTH + blockLength;
        flags |= Wire.FLAG_COMPRESSED;
      }
    }
    makeRoom(Wire.ENTRY_HEADER_LENGTH + storedLength);
    int sum =
        checksum.of(
            channel.regionIndex(),
            subpartition,
            position++,
            flags,
            type,
            ByteBuffer.wrap(stored, 0, storedLength));
    body.putIntBigEndian(bodyLength, storedLength);
    body.putIntBigEndian(bodyLength + 4, subpartition);
    body.put(bodyLength + 8, (byte) flags);
    body.put(bodyLength + 9, (byte) type);
    body.putShortBigEndian(bodyLength + 10, (short) 0);
    body.putIntBigEndian(bodyLength + 12, sum);
    body.put(bodyLength + Wire.ENTRY_HEADER_LENGTH, stored, 0, storedLength);
    bodyLength += Wire.ENTRY_HEADER_LENGTH + storedLength;
    bodyEntries++;
  }

  private void makeRoom(int length) throws IOException, InterruptedException {
    if (body != null && bodyLength + length > bufferSize) {
      sendBody();
    }
    if (body == null) {
      body = segments.take();
      bodyLength = 0;
      bodyEntries = 0;
    }
  }

  private void sendBody() throws IOException, InterruptedException {
    NetworkBuffer buffer = new NetworkBuffer(body, recycler);
    buffer.setSize(bodyLength);
    body = null;
    channel.send(buffer, bodyEntries);
  }

  void finishRegion() throws IOException, InterruptedException {
    if (body != null) {
      sendBody();
    }
    channel.finishRegion();
  }

  /** Gives back a body that was not sent. Idempotent. */
  void close() {
    if (body != null) {
      recycler.recycle(body);
      body = null;
    }
  }
}
