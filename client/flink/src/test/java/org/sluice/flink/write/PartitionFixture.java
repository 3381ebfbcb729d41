package org.sluice.flink.write;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.metrics.groups.TaskIOMetricGroup;
import org.apache.flink.runtime.metrics.groups.UnregisteredMetricGroups;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.support.Entries;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.support.Metrics;
import org.sluice.flink.support.TaskThread;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.wire.MessageType;

/** A result that is written to a fake worker, with Flink's own buffer pool. */
final class PartitionFixture implements AutoCloseable {
  static final long LONG_MS = 3_600_000;
  static final int BUFFERS = SluiceResultPartition.BUFFERS_MIN;

  final FakeManager manager = new FakeManager();
  final FakeWorker worker = new FakeWorker("worker-1");
  final Metrics metrics = new Metrics();
  final TaskIOMetricGroup taskMetrics =
      UnregisteredMetricGroups.createUnregisteredTaskMetricGroup().getIOMetricGroup();
  final NetworkBufferPool buffers = new NetworkBufferPool(BUFFERS, Descriptors.BUFFER_SIZE);

  long openMs = LONG_MS;
  long regionMs = LONG_MS;
  long commitMs = LONG_MS;
  String codec = "none";
  SluiceShuffleDescriptor descriptor;
  SluiceResultPartition partition;
  BufferPool pool;

  private final ManagerClient client = manager.client();
  private final ConnectionPool connections =
      new ConnectionPool(
          new ConnectionPool.Settings(FakeWorker.CLUSTER, null, 2, 5_000, 10_000, "test"));

  PartitionFixture() throws IOException {
    manager.worker = worker.address();
  }

  SluiceResultPartition open(int subpartitions) throws IOException {
    descriptor = new Descriptors().next(worker.address(), subpartitions, codec);
    partition =
        new SluiceResultPartition(
            "a task",
            0,
            descriptor,
            ResultPartitionType.BLOCKING,
            subpartitions,
            128,
            () -> pool = buffers.createBufferPool(BUFFERS, BUFFERS),
            new Locator(connections, client),
            new WriteSettings(openMs, regionMs, commitMs),
            metrics);
    partition.setMetricGroup(taskMetrics);
    partition.setup();
    return partition;
  }

  static ByteBuffer record(String text) {
    return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
  }

  /** In a thread of its own, as the task's. */
  static TaskThread<Void> task(Work work) {
    Callable<Void> call =
        () -> {
          work.run();
          return null;
        };
    return new TaskThread<>(call);
  }

  interface Work {
    void run() throws Exception;
  }

  /** One region as it came. */
  static final class Region {
    final FakeWorker.Frame start;
    final List<Entries.Entry> entries = new ArrayList<>();
    int bodyCount;
    long byteCount;

    Region(FakeWorker.Frame start) {
      this.start = start;
    }

    boolean isBroadcast() {
      return start.message.flag("isBroadcast");
    }

    long boundBytes() {
      return start.message.number("boundBytes");
    }
  }

  /** Opens the write and answers it. */
  FakeWorker.Frame opened() throws Exception {
    FakeWorker.Frame open = worker.await(MessageType.OPEN_WRITE);
    open.reply(MessageType.WRITE_OPENED);
    return open;
  }

  void credit(FakeWorker.Frame start, long credit) throws IOException {
    start.reply(MessageType.ADD_CREDIT, credit, start.message.number("regionIndex"));
  }

  /** Takes a whole region, one credit at a time. */
  Region region() throws Exception {
    Region region = new Region(worker.await(MessageType.REGION_START));
    credit(region.start, 1);
    while (true) {
      FakeWorker.Frame frame = worker.awaitAny();
      if (frame.message.type() == MessageType.REGION_FINISH) {
        assertEquals(
            region.byteCount, frame.message.number("byteCount"));
        assertEquals(
            region.entries.size(), frame.message.number("entryCount"));
        return region;
      }
      assertEquals(
          MessageType.WRITE_DATA, frame.message.type());
      region.bodyCount++;
      region.byteCount += frame.body.length;
      region.entries.addAll(Entries.of(frame.body));
      credit(region.start, 1);
    }
  }

  /** Answers the end of the write with totals. */
  FakeWorker.Frame commit(long regions, long entries, long bytes) throws Exception {
    FakeWorker.Frame finish = worker.await(MessageType.WRITE_FINISH);
    finish.reply(MessageType.WRITE_COMMITTED, regions, entries, bytes, bytes, "none");
    return finish;
  }

  void awaitAllReturned() throws Exception {
    Await.until(
        "all buffers are back", () -> buffers.getNumberOfAvailableMemorySegments() == BUFFERS);
  }

  @Override
  public void close() throws Exception {
    if (partition != null) {
      partition.close();
      awaitAllReturned();
    }
    connections.close();
    client.close();
    worker.close();
    manager.close();
    buffers.destroyAllBufferPools();
    buffers.destroy();
  }
}
