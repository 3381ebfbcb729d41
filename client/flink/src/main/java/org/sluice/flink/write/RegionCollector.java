package org.sluice.flink.write;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.core.memory.MemorySegment;
import org.sluice.flink.wire.Wire;

/**
 * Collects the records and events of one data region, and sends them when there is no more room.
 * A region is broadcast or not as a whole, so a change from one to the other ends it too. Events
 * keep their place among the data: they stand in the first run. Used by the task thread alone.
 */
final class RegionCollector {
  /** Events of a region beside its data; more would be more than anyone broadcasts. */
  private static final int EVENTS_MAX = 1024;

  /** Whom it tells what it sends, before compression. */
  interface Counts {
    void add(long bytes, int buffers, int subpartition, boolean isToAll);
  }

  /** An event, in its place among the bytes of its run. */
  private static final class PlacedEvent {
    final long afterBytes;
    final int type;
    final ByteBuffer bytes;

    PlacedEvent(long afterBytes, int type, ByteBuffer bytes) {
      this.afterBytes = afterBytes;
      this.type = type;
      this.bytes = bytes;
    }
  }

  private final int subpartitionCount;
  private final SortBuffer sortBuffer;
  private final RegionWriter writer;
  private final Counts counts;
  private final List<PlacedEvent> events = new ArrayList<>();
  private long eventBytes;
  private boolean isBroadcast;

  RegionCollector(
      int subpartitionCount, SortBuffer sortBuffer, RegionWriter writer, Counts counts) {
    this.subpartitionCount = subpartitionCount;
    this.sortBuffer = sortBuffer;
    this.writer = writer;
    this.counts = counts;
  }

  void addRecord(ByteBuffer record, int subpartition, boolean toAll)
      throws IOException, InterruptedException {
    enter(toAll);
    if (sortBuffer.append(subpartition, record)) {
      return;
    }
    flush();
    if (!sortBuffer.append(subpartition, record)) {
      sendLarge(record, subpartition);
    }
  }

  void addEvent(ByteBuffer bytes, int type, boolean toAll)
      throws IOException, InterruptedException {
    if (bytes.remaining() > writer.payloadMax()) {
      throw new IOException("an event of " + bytes.remaining() + " bytes fits no buffer");
    }
    enter(toAll);
    if (events.size() == EVENTS_MAX) {
      flush();
    }
    events.add(new PlacedEvent(sortBuffer.byteCount(0), type, bytes));
    eventBytes += bytes.remaining();
  }

  private void enter(boolean toAll) throws IOException, InterruptedException {
    if (isBroadcast != toAll) {
      flush();
      isBroadcast = toAll;
    }
  }

  /** Sends what has been collected as one region, if there is anything. */
  void flush() throws IOException, InterruptedException {
    if (sortBuffer.isEmpty() && events.isEmpty()) {
      return;
    }
    int runs = isBroadcast ? 1 : subpartitionCount;
    long bound = writer.boundBytes(sortBuffer.byteCount(0), events.size(), eventBytes);
    for (int run = 1; run < runs; run++) {
      bound += writer.boundBytes(sortBuffer.byteCount(run), 0, 0);
    }
    writer.startRegion(isBroadcast, bound);
    for (int run = 0; run < runs; run++) {
      sendRun(run);
    }
    writer.finishRegion();
    sortBuffer.clear();
    events.clear();
    eventBytes = 0;
  }

  private void sendRun(int run) throws IOException, InterruptedException {
    long dataBytes = sortBuffer.byteCount(run);
    SortBuffer.Reader reader = sortBuffer.reader(run);
    writer.startRun();
    long written = 0;
    int eventCount = run == 0 ? events.size() : 0;
    for (int index = 0; index < eventCount; index++) {
      PlacedEvent event = events.get(index);
      writer.writeData(reader::read, event.afterBytes - written, mark(run), false);
      written = event.afterBytes;
      boolean isLast = index == eventCount - 1 && written == dataBytes;
      writer.writeEvent(event.bytes, event.type, mark(run), isLast);
      count(event.bytes.remaining(), run);
    }
    writer.writeData(reader::read, dataBytes - written, mark(run), true);
    count(dataBytes, run);
  }

  /** A record larger than the whole sort buffer is a region of its own. */
  private void sendLarge(ByteBuffer record, int subpartition)
      throws IOException, InterruptedException {
    int length = record.remaining();
    writer.startRegion(isBroadcast, writer.boundBytes(length, 0, 0));
    writer.startRun();
    writer.writeData(
        (target, part) -> record.get(target, 0, part), length, mark(subpartition), true);
    writer.finishRegion();
    count(length, subpartition);
  }

  private int mark(int run) {
    return isBroadcast ? Wire.BROADCAST_SUBPARTITION : run;
  }

  private void count(long bytes, int run) {
    if (bytes > 0) {
      int buffers = (int) ((bytes + writer.payloadMax() - 1) / writer.payloadMax());
      counts.add(bytes, buffers, run, isBroadcast);
    }
  }

  /** Answers the memory, which is of no more use here. */
  List<MemorySegment> close() {
    writer.close();
    return sortBuffer.release();
  }
}
