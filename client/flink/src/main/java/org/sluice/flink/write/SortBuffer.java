package org.sluice.flink.write;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.core.memory.MemorySegment;

/**
 * Records of one data region, as one chain of blocks for each subpartition. Memory is taken segment
 * by segment as it is needed, cut into blocks, and kept for the next region until it is released.
 *
 * <pre>
 *   subpartition 0:  block ─> block ─> block      a record may span blocks
 *   subpartition 1:  block
 * </pre>
 */
final class SortBuffer {
  /** Where segments come from; may block. */
  interface SegmentSource {
    MemorySegment take() throws IOException, InterruptedException;
  }

  private static final int BLOCK_BYTES_MIN = 64;
  private static final int BLOCK_BYTES_MAX = 8192;

  private final SegmentSource source;
  private final int segmentCountMax;
  private final int blockBytes;
  private final int blocksPerSegment;
  private final List<MemorySegment> segments = new ArrayList<>();
  private final int[] next;
  private int freeHead = -1;
  private int made;
  private int taken;

  private final int[] heads;
  private final int[] tails;
  private final int[] used;
  private final long[] byteCounts;
  private long totalBytes;

  SortBuffer(int subpartitionCount, int segmentCountMax, int segmentBytes, SegmentSource source) {
    this.source = source;
    this.segmentCountMax = segmentCountMax;
    long wanted = (long) segmentBytes * segmentCountMax / (4L * subpartitionCount);
    int bytes = BLOCK_BYTES_MIN;
    while (bytes * 2L <= Math.min(wanted, Math.min(segmentBytes, BLOCK_BYTES_MAX))) {
      bytes *= 2;
    }
    this.blockBytes = bytes;
    this.blocksPerSegment = segmentBytes / bytes;
    this.next = new int[blocksPerSegment * segmentCountMax];
    this.heads = new int[subpartitionCount];
    this.tails = new int[subpartitionCount];
    this.used = new int[subpartitionCount];
    this.byteCounts = new long[subpartitionCount];
    Arrays.fill(heads, -1);
    Arrays.fill(tails, -1);
  }

  boolean isEmpty() {
    return totalBytes == 0;
  }

  long byteCount(int subpartition) {
    return byteCounts[subpartition];
  }

  /** Adds all of the record; false, and nothing done, when it does not fit now. */
  boolean append(int subpartition, ByteBuffer record) throws IOException, InterruptedException {
    int length = record.remaining();
    int room = tails[subpartition] < 0 ? 0 : blockBytes - used[subpartition];
    long blocksNeeded = length <= room ? 0 : ((long) length - room + blockBytes - 1) / blockBytes;
    if (blocksNeeded > (long) blocksPerSegment * segmentCountMax - taken) {
      return false;
    }
    while (record.hasRemaining()) {
      if (tails[subpartition] < 0 || used[subpartition] == blockBytes) {
        addBlock(subpartition);
      }
      int part = Math.min(record.remaining(), blockBytes - used[subpartition]);
      int tail = tails[subpartition];
      segments
          .get(tail / blocksPerSegment)
          .put((tail % blocksPerSegment) * blockBytes + used[subpartition], record, part);
      used[subpartition] += part;
    }
    byteCounts[subpartition] += length;
    totalBytes += length;
    return true;
  }

  private void addBlock(int subpartition) throws IOException, InterruptedException {
    int block = freeHead;
    if (block >= 0) {
      freeHead = next[block];
    } else {
      if (made == segments.size() * blocksPerSegment) {
        segments.add(source.take());
      }
      block = made++;
    }
    taken++;
    next[block] = -1;
    if (tails[subpartition] < 0) {
      heads[subpartition] = block;
    } else {
      next[tails[subpartition]] = block;
    }
    tails[subpartition] = block;
    used[subpartition] = 0;
  }

  /** Reads the chain of one subpartition from its beginning. */
  Reader reader(int subpartition) {
    return new Reader(heads[subpartition]);
  }

  /** Copies a chain piece by piece. */
  final class Reader {
    private int block;
    private int position;

    Reader(int head) {
      this.block = head;
    }

    void read(byte[] target, int length) {
      int done = 0;
      while (done < length) {
        if (position == blockBytes) {
          block = next[block];
          position = 0;
        }
        int part = Math.min(length - done, blockBytes - position);
        segments
            .get(block / blocksPerSegment)
            .get((block % blocksPerSegment) * blockBytes + position, target, done, part);
        position += part;
        done += part;
      }
    }
  }

  /** Empties it; the memory stays. */
  void clear() {
    freeHead = -1;
    made = 0;
    taken = 0;
    totalBytes = 0;
    Arrays.fill(heads, -1);
    Arrays.fill(tails, -1);
    Arrays.fill(used, 0);
    Arrays.fill(byteCounts, 0);
  }

  /** Gives the segments away; it must be empty or of no more use. */
  List<MemorySegment> release() {
    clear();
    List<MemorySegment> given = new ArrayList<>(segments);
    segments.clear();
    return given;
  }
}
