package org.sluice.flink.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.sluice.flink.write.PartitionFixture.record;
import static org.sluice.flink.write.PartitionFixture.task;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.network.api.EndOfSuperstepEvent;
import org.apache.flink.runtime.io.network.api.StopMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.BlockCodec;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.support.Entries;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.support.TaskThread;
import org.sluice.flink.wire.EntryChecksum;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.Wire;

class SluiceResultPartitionTest {
  private PartitionFixture f;

  @BeforeEach
  void make() throws Exception {
    f = new PartitionFixture();
  }

  @AfterEach
  void end() throws Exception {
    f.close();
  }

  private static byte[] random(int length) {
    byte[] bytes = new byte[length];
    new Random(7).nextBytes(bytes);
    return bytes;
  }

  private static List<Integer> subpartitions(PartitionFixture.Region region) {
    List<Integer> found = new ArrayList<>();
    region.entries.forEach(entry -> found.add(entry.subpartition));
    return found;
  }

  private static List<Integer> types(PartitionFixture.Region region) {
    List<Integer> found = new ArrayList<>();
    region.entries.forEach(entry -> found.add(entry.type));
    return found;
  }

  private static byte[] payloads(List<Entries.Entry> entries) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    entries.forEach(entry -> all.writeBytes(entry.payload));
    return all.toByteArray();
  }

  private static long[] bytesBySubpartition(FakeWorker.Frame finish) {
    ByteBuffer body = ByteBuffer.wrap(finish.body);
    long[] bytes = new long[finish.body.length / 8];
    for (int index = 0; index < bytes.length; index++) {
      bytes[index] = body.getLong();
    }
    return bytes;
  }

  // --- what is written ---

  @Test
  @DisplayName("the worker is asked for nothing before there is a region to send")
  void lazy() throws Exception {
    f.open(2);
    f.partition.emitRecord(record("one"), 1);
    assertEquals(0, f.worker.connectionCount());
  }

  @Test
  @DisplayName("records go out by subpartition, ends in a broadcast region behind them; then it is committed")
  void unicast() throws Exception {
    f.open(3);
    f.partition.emitRecord(record("two"), 2);
    f.partition.emitRecord(record("zero"), 0);
    f.partition.emitRecord(record("TWO"), 2);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.notifyEndOfData(StopMode.DRAIN);
              f.partition.finish();
            });
    FakeWorker.Frame open = f.opened();
    assertEquals(f.descriptor.key(), open.message.get("key"));
    assertEquals(3, open.message.number("subpartitionCount"));
    assertEquals(2, open.message.number("lastSubpartition"));
    assertEquals(Descriptors.BUFFER_SIZE, open.message.number("bufferSizeBytes"));
    PartitionFixture.Region data = f.region();
    assertFalse(data.isBroadcast());
    assertEquals(List.of(0, 2), subpartitions(data));
    assertEquals("zero", data.entries.get(0).text());
    assertEquals("twoTWO", data.entries.get(1).text());
    assertTrue(data.entries.get(0).isLastOfRun() && data.entries.get(1).isLastOfRun());
    assertTrue(data.byteCount <= data.boundBytes());
    PartitionFixture.Region ends = f.region();
    assertTrue(ends.isBroadcast());
    assertEquals(List.of(-1, -1), subpartitions(ends));
    assertEquals(List.of(Wire.TYPE_END_OF_DATA, Wire.TYPE_END_OF_PARTITION), types(ends));
    long eventBytes = payloads(ends.entries).length;
    FakeWorker.Frame finish = f.commit(2, 4, data.byteCount + ends.byteCount);
    task.get();
    assertEquals(2, finish.message.number("regionCount"));
    assertEquals(3, finish.message.number("recordCount"));
    assertTrue(finish.message.flag("isLast"));
    long[] expected = {4 + eventBytes, eventBytes, 6 + eventBytes};
    assertArrayEquals(expected, bytesBySubpartition(finish));
    // What AdaptiveBatch decides by, and what the task shows.
    assertArrayEquals(
        expected,
        f.taskMetrics
            .createSnapshot()
            .getResultPartitionBytes()
            .get(f.descriptor.getResultPartitionID().getPartitionId())
            .getSubpartitionBytes());
    assertEquals(10 + 3 * eventBytes, f.taskMetrics.getNumBytesOutCounter().getCount());
    assertTrue(f.partition.isFinished());
  }

  @Test
  @DisplayName("checksums cover key, region, subpartition, position, flags and type")
  void checksums() throws Exception {
    f.open(2);
    byte[] first = random(6000);
    f.partition.emitRecord(ByteBuffer.wrap(first), 1);
    TaskThread<Void> task = task(f.partition::finish);
    f.opened();
    PartitionFixture.Region data = f.region();
    assertEquals(List.of(1, 1), subpartitions(data));
    assertArrayEquals(first, payloads(data.entries));
    for (int position = 0; position < 2; position++) {
      Entries.Entry entry = data.entries.get(position);
      int sum =
          new EntryChecksum(f.descriptor.key())
              .of(0, 1, position, entry.flags, entry.type, ByteBuffer.wrap(entry.payload));
      assertEquals(sum, entry.sum);
    }
    PartitionFixture.Region ends = f.region();
    f.commit(2, 3, data.byteCount + ends.byteCount);
    task.get();
  }

  @Test
  @DisplayName("a broadcast record is stored once and counted for every subpartition")
  void broadcast() throws Exception {
    f.open(4);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(record("before"), 3);
              f.partition.broadcastRecord(record("to all"));
              f.partition.emitRecord(record("after"), 3);
              f.partition.finish();
            });
    f.opened();
    List<PartitionFixture.Region> regions = new ArrayList<>();
    long bytes = 0;
    for (int index = 0; index < 4; index++) {
      regions.add(f.region());
      bytes += regions.get(index).byteCount;
    }
    FakeWorker.Frame finish = f.commit(4, 4, bytes);
    task.get();
    assertEquals(List.of(3), subpartitions(regions.get(0)));
    assertEquals(List.of(-1), subpartitions(regions.get(1)));
    assertEquals("to all", regions.get(1).entries.get(0).text());
    assertEquals(List.of(3), subpartitions(regions.get(2)));
    long ends = payloads(regions.get(3).entries).length;
    assertArrayEquals(
        new long[] {6 + ends, 6 + ends, 6 + ends, 17 + ends}, bytesBySubpartition(finish));
  }

  @Test
  @DisplayName("with one subpartition a broadcast is plain data, and events keep their place in it")
  void oneSubpartition() throws Exception {
    f.open(1);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.broadcastRecord(record("before"));
              f.partition.broadcastEvent(EndOfSuperstepEvent.INSTANCE, false);
              f.partition.emitRecord(record("after"), 0);
              f.partition.finish();
            });
    f.opened();
    PartitionFixture.Region only = f.region();
    assertFalse(only.isBroadcast());
    assertEquals(
        List.of(
            Wire.TYPE_DATA,
            Wire.TYPE_END_OF_SUPERSTEP,
            Wire.TYPE_DATA,
            Wire.TYPE_END_OF_PARTITION),
        types(only));
    assertEquals("before", only.entries.get(0).text());
    assertEquals("after", only.entries.get(2).text());
    assertFalse(only.entries.get(2).isLastOfRun());
    assertTrue(only.entries.get(3).isLastOfRun());
    assertTrue(only.byteCount <= only.boundBytes());
    f.commit(1, 4, only.byteCount);
    task.get();
  }

  @Test
  @DisplayName("a record larger than all memory is a region of its own, in its place")
  void largeRecord() throws Exception {
    f.open(2);
    byte[] large = random(100_000);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(record("before"), 0);
              f.partition.emitRecord(ByteBuffer.wrap(large), 1);
              f.partition.emitRecord(record("after"), 0);
              f.partition.finish();
            });
    f.opened();
    PartitionFixture.Region before = f.region();
    PartitionFixture.Region own = f.region();
    PartitionFixture.Region after = f.region();
    PartitionFixture.Region ends = f.region();
    assertEquals("before", before.entries.get(0).text());
    assertArrayEquals(large, payloads(own.entries));
    assertTrue(own.byteCount <= own.boundBytes());
    for (Entries.Entry entry : own.entries) {
      boolean isLast = entry == own.entries.get(own.entries.size() - 1);
      assertEquals(isLast, entry.isLastOfRun());
      assertEquals(1, entry.subpartition);
      assertTrue(entry.payload.length <= Descriptors.BUFFER_SIZE - Wire.ENTRY_RESERVE_BYTES);
    }
    assertEquals("after", after.entries.get(0).text());
    f.commit(
        4,
        before.entries.size() + own.entries.size() + after.entries.size() + ends.entries.size(),
        before.byteCount + own.byteCount + after.byteCount + ends.byteCount);
    task.get();
  }

  @Test
  @DisplayName("records of no bytes are counted and cost nothing")
  void zeroLength() throws Exception {
    f.open(2);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(record(""), 0);
              f.partition.emitRecord(record(""), 1);
              f.partition.finish();
            });
    f.opened();
    PartitionFixture.Region ends = f.region();
    assertEquals(List.of(Wire.TYPE_END_OF_PARTITION), types(ends));
    FakeWorker.Frame finish = f.commit(1, 1, ends.byteCount);
    task.get();
    assertEquals(2, finish.message.number("recordCount"));
  }

  @Test
  @DisplayName("a full sort buffer leaves as a region, and no record is lost or changed")
  void manyRegions() throws Exception {
    f.open(5);
    Random random = new Random(11);
    ByteArrayOutputStream[] expected = new ByteArrayOutputStream[5];
    for (int index = 0; index < 5; index++) {
      expected[index] = new ByteArrayOutputStream();
    }
    int recordCount = 1000;
    TaskThread<Void> task =
        task(
            () -> {
              for (int count = 0; count < recordCount; count++) {
                byte[] bytes = new byte[random.nextInt(500)];
                random.nextBytes(bytes);
                int subpartition = random.nextInt(5);
                expected[subpartition].writeBytes(bytes);
                f.partition.emitRecord(ByteBuffer.wrap(bytes), subpartition);
              }
              f.partition.finish();
            });
    f.opened();
    ByteArrayOutputStream[] found = new ByteArrayOutputStream[5];
    for (int index = 0; index < 5; index++) {
      found[index] = new ByteArrayOutputStream();
    }
    long entries = 0;
    long bytes = 0;
    int regions = 0;
    PartitionFixture.Region region;
    do {
      region = f.region();
      regions++;
      entries += region.entries.size();
      bytes += region.byteCount;
      assertTrue(region.byteCount <= region.boundBytes());
      if (!region.isBroadcast()) {
        region.entries.forEach(entry -> found[entry.subpartition].writeBytes(entry.payload));
      }
    } while (!region.isBroadcast());
    f.commit(regions, entries, bytes);
    task.get();
    assertTrue(regions > 3, regions + " regions");
    for (int index = 0; index < 5; index++) {
      assertArrayEquals(expected[index].toByteArray(), found[index].toByteArray());
    }
  }

  @Test
  @DisplayName("data is compressed where that is smaller; events and what gains nothing are not")
  void compressed() throws Exception {
    f.codec = "lz4";
    f.open(2);
    String text = "again and ".repeat(100);
    byte[] noise = random(1000);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(record(text), 0);
              f.partition.emitRecord(ByteBuffer.wrap(noise), 1);
              f.partition.finish();
            });
    f.opened();
    PartitionFixture.Region data = f.region();
    Entries.Entry packed = data.entries.get(0);
    assertTrue((packed.flags & Wire.FLAG_COMPRESSED) != 0);
    byte[] found = new byte[text.length()];
    ByteBuffer payload = ByteBuffer.allocate(8 + packed.payload.length);
    payload.position(8);
    payload.put(packed.payload);
    assertEquals(text.length(), payload.getInt(8));
    BlockCodec.of("lz4", Descriptors.BUFFER_SIZE)
        .decompress(payload, 12, packed.payload.length - 4, found, text.length());
    assertEquals(text, new String(found, StandardCharsets.UTF_8));
    assertEquals(0, data.entries.get(1).flags & Wire.FLAG_COMPRESSED);
    assertArrayEquals(noise, data.entries.get(1).payload);
    PartitionFixture.Region ends = f.region();
    assertEquals(0, ends.entries.get(0).flags & Wire.FLAG_COMPRESSED);
    FakeWorker.Frame finish = f.commit(2, 3, data.byteCount + ends.byteCount);
    task.get();
    assertEquals(
        text.length() + payloads(ends.entries).length,
        bytesBySubpartition(finish)[0],
        "what adaptive scheduling sees is uncompressed");
  }

  @Test
  @DisplayName("events without end leave in regions of their own, and none is lost")
  void manyEvents() throws Exception {
    f.open(2);
    int count = 2500;
    TaskThread<Void> task =
        task(
            () -> {
              for (int event = 0; event < count; event++) {
                f.partition.broadcastEvent(EndOfSuperstepEvent.INSTANCE, false);
              }
              f.partition.finish();
            });
    f.opened();
    int events = 0;
    long bytes = 0;
    int regions = 0;
    while (events < count + 1) {
      PartitionFixture.Region region = f.region();
      assertTrue(region.byteCount <= region.boundBytes());
      regions++;
      events += region.entries.size();
      bytes += region.byteCount;
    }
    f.commit(regions, events, bytes);
    task.get();
    assertEquals(3, regions);
  }

  @Test
  @DisplayName("Flink's own manager of partitions knows nothing of it")
  void notRegistered() throws Exception {
    f.open(2);
    assertEquals(0, f.partition.getNumberOfQueuedBuffers());
    assertTrue(f.partition.getAvailableFuture().isDone());
    assertTrue(f.partition.getAllDataProcessedFuture().isDone());
  }

  // --- what goes wrong ---

  @Test
  @DisplayName("other totals at the commit than were sent are miscounted data")
  void wrongTotals() throws Exception {
    f.open(2);
    TaskThread<Void> task = task(f.partition::finish);
    f.opened();
    PartitionFixture.Region ends = f.region();
    f.commit(1, 2, ends.byteCount);
    assertEquals(ErrorCode.COUNT_MISMATCH, ((ShuffleException) task.failure()).code());
    assertFalse(f.partition.isFinished());
  }

  @Test
  @DisplayName("a task that was cancelled writes no more")
  void cancelledBefore() throws Exception {
    f.open(2);
    f.partition.emitRecord(record("x"), 0);
    f.partition.fail(new Exception("cancelled"));
    TaskThread<Void> task = task(() -> f.partition.emitRecord(record("y"), 0));
    assertEquals(CancelTaskException.class, task.failure().getClass());
    f.partition.close();
    f.awaitAllReturned();
  }

  @Test
  @DisplayName("cancelled while it waits for a buffer, it gives everything back")
  void cancelledForBuffer() throws Exception {
    f.open(1);
    List<MemorySegment> taken = new ArrayList<>();
    for (int count = 0; count < PartitionFixture.BUFFERS; count++) {
      taken.add(f.pool.requestMemorySegment());
    }
    TaskThread<Void> task = task(() -> f.partition.emitRecord(record("x"), 0));
    task.awaitBlocked();
    f.partition.fail(null);
    assertEquals(CancelTaskException.class, task.failure().getClass());
    taken.forEach(f.pool::recycle);
    f.partition.close();
    f.awaitAllReturned();
  }

  @Test
  @DisplayName("a buffer that comes back is taken by the task that waits for one")
  void waitsForBuffer() throws Exception {
    f.open(1);
    List<MemorySegment> taken = new ArrayList<>();
    for (int count = 0; count < PartitionFixture.BUFFERS; count++) {
      taken.add(f.pool.requestMemorySegment());
    }
    TaskThread<Void> task = task(() -> f.partition.emitRecord(record("x"), 0));
    task.awaitBlocked();
    taken.forEach(f.pool::recycle);
    task.get();
  }
}
