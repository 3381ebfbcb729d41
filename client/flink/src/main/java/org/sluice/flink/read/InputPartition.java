package org.sluice.flink.read;

import java.nio.ByteBuffer;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.wire.EntryChecksum;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;
import org.sluice.flink.wire.PartitionList;
import org.sluice.flink.wire.Wire;

/**
 * One input of a gate: a range of subpartitions of one partition, and how far it has been received.
 * What it accepts has been checked: the order of runs, the position of each entry in its run (by the
 * checksum, which covers it), the totals at the end. So after a cut it knows to the byte where to go
 * on. Belongs to the task thread.
 */
public final class InputPartition {
  final int channelIndex;
  final SluiceShuffleDescriptor descriptor;
  final PartitionKey key;
  final int firstSubpartition;
  final int lastSubpartition;

  private EntryChecksum checksum;
  private boolean hasRun;
  private boolean isRunOpen;
  private int regionIndex;
  private int subpartition;
  private long runBytes;
  private int position;
  private long entryCount;
  private long byteCount;
  private boolean isFinished;

  private int endsOfData;
  private int endsOfPartition;

  public InputPartition(
      int channelIndex,
      SluiceShuffleDescriptor descriptor,
      int firstSubpartition,
      int lastSubpartition) {
    this.channelIndex = channelIndex;
    this.descriptor = descriptor;
    this.key = descriptor.key();
    this.firstSubpartition = firstSubpartition;
    this.lastSubpartition = lastSubpartition;
  }

  int subpartitionCount() {
    return lastSubpartition - firstSubpartition + 1;
  }

  boolean isFinished() {
    return isFinished;
  }

  /** Its line in the list of a channel: from just behind the last entry received. */
  PartitionList.Entry listEntry(int index) {
    return new PartitionList.Entry(
        index,
        key,
        firstSubpartition,
        lastSubpartition,
        hasRun ? regionIndex : 0,
        hasRun ? subpartition : 0,
        hasRun ? runBytes : 0,
        false);
  }

  /** The entries that follow are of this run. */
  void enterRun(int region, int served) throws ShuffleException {
    if (hasRun && region == regionIndex && served == subpartition) {
      if (!isRunOpen) {
        throw corrupt("a run goes on behind its end");
      }
      return;
    }
    if (isRunOpen) {
      throw corrupt("a run ends without its last entry");
    }
    if (served < firstSubpartition || served > lastSubpartition) {
      throw corrupt("subpartition " + served + " was not asked for");
    }
    if (hasRun && (region < regionIndex || (region == regionIndex && served < subpartition))) {
      throw corrupt("runs are out of order");
    }
    hasRun = true;
    isRunOpen = true;
    regionIndex = region;
    subpartition = served;
    runBytes = 0;
    position = 0;
  }

  /** Checks an entry and counts it as received. */
  void accept(int entrySubpartition, int flags, int type, int sum, ByteBuffer payload)
      throws ShuffleException {
    if (!isRunOpen) {
      throw corrupt("a run goes on behind its end");
    }
    if (entrySubpartition != subpartition && entrySubpartition != Wire.BROADCAST_SUBPARTITION) {
      throw corrupt("an entry of subpartition " + entrySubpartition + " stands in another run");
    }
    if (checksum == null) {
      checksum = new EntryChecksum(key);
    }
    int length = payload.remaining();
    if (checksum.of(regionIndex, entrySubpartition, position, flags, type, payload) != sum) {
      throw corrupt("the checksum does not match");
    }
    position++;
    runBytes += Wire.ENTRY_HEADER_LENGTH + length;
    byteCount += Wire.ENTRY_HEADER_LENGTH + length;
    entryCount++;
    if ((flags & Wire.FLAG_LAST_OF_RUN) != 0) {
      isRunOpen = false;
    }
  }

  /** The worker has sent all of it: the totals are compared with what came over all channels. */
  void finish(long entries, long bytes) throws ShuffleException {
    boolean hasAllEnds =
        endsOfPartition == subpartitionCount() && endsOfData <= subpartitionCount();
    if (isRunOpen || entries != entryCount || bytes != byteCount || !hasAllEnds) {
      throw new ShuffleException(
          ErrorCode.COUNT_MISMATCH,
          "received "
              + entryCount
              + " entries of "
              + byteCount
              + " bytes and "
              + endsOfPartition
              + " ends of "
              + subpartitionCount()
              + " subpartitions, the worker counts "
              + entries
              + " of "
              + bytes
              + ": "
              + descriptor);
    }
    isFinished = true;
  }

  /** Whether with this one all subpartitions have told the end of their data. */
  boolean countEndOfData() {
    return ++endsOfData == subpartitionCount();
  }

  /** Whether with this one all subpartitions have ended. */
  boolean countEndOfPartition() throws ShuffleException {
    if (++endsOfPartition > subpartitionCount()) {
      throw corrupt("it ends more often than it has subpartitions");
    }
    return endsOfPartition == subpartitionCount();
  }

  ShuffleException corrupt(String what) {
    return new ShuffleException(
        ErrorCode.DATA_CORRUPT,
        what
            + ": "
            + descriptor
            + ", region "
            + regionIndex
            + ", subpartition "
            + subpartition
            + ", position "
            + position);
  }
}
