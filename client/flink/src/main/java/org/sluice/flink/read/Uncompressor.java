package org.sluice.flink.read;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.sluice.flink.BlockCodec;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.Wire;

/**
 * Uncompresses entries in the task thread, into memory of its own: the task has one or two such
 * buffers at a time, which go round.
 */
final class Uncompressor {
  private static final int SPARE_MAX = 4;

  private final int bufferSize;
  private final Map<String, BlockCodec> codecs = new HashMap<>();
  private final ArrayDeque<MemorySegment> spare = new ArrayDeque<>();
  private boolean isClosed;

  Uncompressor(int bufferSize) {
    this.bufferSize = bufferSize;
  }

  /** The payload of a compressed entry: from {@code start} on in {@code bytes}, so many bytes. */
  NetworkBuffer uncompress(InputPartition partition, ByteBuffer bytes, int start, int length)
      throws ShuffleException {
    int blockLength = length - Wire.COMPRESSED_PREFIX_LENGTH;
    int size = blockLength > 0 ? bytes.getInt(start) : 0;
    if (size <= 0 || size > bufferSize - Wire.ENTRY_RESERVE_BYTES) {
      throw partition.corrupt("a compressed entry has an impossible size");
    }
    BlockCodec codec = codecOf(partition.descriptor.codec());
    if (codec == null) {
      throw partition.corrupt("an entry is compressed although its partition is not");
    }
    MemorySegment target = take();
    boolean isDone = false;
    try {
      codec.decompress(
          bytes, start + Wire.COMPRESSED_PREFIX_LENGTH, blockLength, target.getArray(), size);
      isDone = true;
    } finally {
      if (!isDone) {
        give(target);
      }
    }
    NetworkBuffer result = new NetworkBuffer(target, this::give);
    result.setSize(size);
    return result;
  }

  private BlockCodec codecOf(String name) throws ShuffleException {
    BlockCodec codec = codecs.get(name);
    if (codec == null && !codecs.containsKey(name)) {
      codec = BlockCodec.of(name, bufferSize - Wire.ENTRY_RESERVE_BYTES);
      codecs.put(name, codec);
    }
    return codec;
  }

  private synchronized MemorySegment take() {
    MemorySegment segment = spare.poll();
    return segment == null ? MemorySegmentFactory.allocateUnpooledSegment(bufferSize) : segment;
  }

  private synchronized void give(MemorySegment segment) {
    if (spare.size() < SPARE_MAX && !isClosed) {
      spare.add(segment);
    }
  }

  /** Keeps nothing from now on. Idempotent. */
  synchronized void close() {
    isClosed = true;
    spare.clear();
  }
}
