package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.StopMode;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.support.Entries;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.support.Metrics;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.PartitionList;
import org.sluice.flink.wire.Wire;

/** A gate that reads from fake workers, with Flink's own buffer pool. */
final class GateFixture implements AutoCloseable {
  static final int BUFFERS = 8;
  static final long NEVER_MS = 3_600_000;

  final Descriptors descriptors = new Descriptors();
  final FakeManager manager = new FakeManager();
  final FakeWorker worker = new FakeWorker("worker-1");
  final Metrics metrics = new Metrics();
  final NetworkBufferPool buffers = new NetworkBufferPool(BUFFERS, Descriptors.BUFFER_SIZE);
  final List<InputPartition> inputs = new ArrayList<>();

  long unreachableMs = NEVER_MS;
  long retryMs = NEVER_MS;
  long idleMs = NEVER_MS;
  long failureDelayMs = NEVER_MS;
  SluiceInputGate gate;
  BufferPool pool;

  private final ManagerClient client = manager.client();
  private final ConnectionPool connections =
      new ConnectionPool(
          new ConnectionPool.Settings(FakeWorker.CLUSTER, null, 2, 5_000, 10_000, "test"));

  GateFixture() throws IOException {
    manager.worker = worker.address();
  }

  /** The next input: subpartitions of a partition of four on the worker. */
  InputPartition input(FakeWorker on, int first, int last, String codec) {
    SluiceShuffleDescriptor descriptor = descriptors.next(on.address(), 4, codec);
    InputPartition input = new InputPartition(inputs.size(), descriptor, first, last);
    inputs.add(input);
    return input;
  }

  InputPartition input(int first, int last) {
    return input(worker, first, last, "none");
  }

  /** Set up, not yet polled. */
  SluiceInputGate open() throws IOException {
    gate =
        new SluiceInputGate(
            "a task",
            0,
            descriptors.dataSet(),
            ResultPartitionType.BLOCKING,
            inputs,
            Descriptors.BUFFER_SIZE,
            () -> pool = buffers.createBufferPool(BUFFERS, BUFFERS),
            new ReadServices(connections, new Locator(connections, client), client),
            new ReadSettings(unreachableMs, retryMs, idleMs, failureDelayMs),
            metrics);
    gate.setup();
    gate.requestPartitions();
    return gate;
  }

  /** Connections that the process has now. */
  int connectionCount() {
    return connections.connectionCount();
  }

  /** Whether the gate has asked its pool for more than there is. */
  boolean isWaitingForBuffers() {
    return pool.getAvailableFuture().getNumberOfDependents() > 0;
  }

  /** Polls without waiting. */
  Optional<BufferOrEvent> poll() throws Exception {
    return gate.pollNext();
  }

  /** Nothing has come so far: what the gate had to do it has done. */
  void pollNothing() throws Exception {
    assertEquals(Optional.empty(), gate.pollNext());
  }

  /** Polls while the test waits for something else. */
  void pollUntil(String what, Await.Condition condition) throws Exception {
    Await.until(
        what,
        () -> {
          assertEquals(Optional.empty(), gate.pollNext());
          return condition.isMet();
        });
  }

  /** As a task does: waits while the gate is not available. */
  BufferOrEvent next() throws Exception {
    while (true) {
      Optional<BufferOrEvent> polled = gate.pollNext();
      if (polled.isPresent()) {
        return polled.get();
      }
      assertTrue(!gate.isFinished(), "the gate has ended");
      gate.getAvailableFuture().get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    }
  }

  /** The worker announces two bodies, sends them, and the task takes them: no credit is left. */
  void readAllAnnounced(FakeWorker.Frame channel, InputPartition input) throws Exception {
    channel.reply(MessageType.BACKLOG, 2L);
    Entries entries = new Entries(input.key).run(0, 0, 0);
    channel.reply(entries.data("one", false).body(), MessageType.READ_DATA);
    channel.reply(entries.data("two", true).body(), MessageType.READ_DATA);
    assertEquals("one", nextText());
    assertEquals("two", nextText());
  }

  String nextText() throws Exception {
    BufferOrEvent next = next();
    assertTrue(next.isBuffer(), String.valueOf(next.getEvent()));
    return textOf(next.getBuffer());
  }

  static String textOf(Buffer buffer) {
    byte[] bytes = new byte[buffer.getSize()];
    buffer.getNioBufferReadable().get(bytes);
    buffer.recycleBuffer();
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** The exception that polling ends with. */
  <T extends Throwable> T failure(Class<T> type) {
    return assertThrows(
        type,
        () -> {
          while (true) {
            BufferOrEvent next = next();
            if (next.isBuffer()) {
              next.getBuffer().recycleBuffer();
            }
          }
        });
  }

  /** Polls until the worker has a frame of this kind. */
  FakeWorker.Frame await(FakeWorker from, MessageType type) throws Exception {
    pollUntil(type + " comes", () -> from.frameCount() > 0);
    return from.await(type);
  }

  /** The channel that the gate opens, and its list. */
  FakeWorker.Frame opened(FakeWorker by, List<PartitionList.Entry> list) throws Exception {
    FakeWorker.Frame open = await(by, MessageType.OPEN_READ);
    assertEquals(Descriptors.BUFFER_SIZE, open.message.number("bufferSizeBytes"));
    assertEquals(2, open.message.number("initialCredit"));
    FakeWorker.Frame added = await(by, MessageType.ADD_PARTITIONS);
    list.addAll(PartitionList.decode(added.body, added.message.number("partitionCount")));
    assertEquals(list.size(), await(by, MessageType.READ_END).message.number("partitionCount"));
    open.reply(MessageType.READ_OPENED);
    return open;
  }

  FakeWorker.Frame opened() throws Exception {
    return opened(worker, new ArrayList<>());
  }

  /** The end events of a subpartition, as the last run of a region. */
  static Entries ends(Entries entries, int index, int region, int subpartition)
      throws IOException {
    return entries
        .run(index, region, subpartition)
        .event(new EndOfData(StopMode.DRAIN), Wire.TYPE_END_OF_DATA, false)
        .event(EndOfPartitionEvent.INSTANCE, Wire.TYPE_END_OF_PARTITION, true);
  }

  static void finish(FakeWorker.Frame channel, long index, Entries entries) throws IOException {
    channel.reply(
        MessageType.PARTITION_FINISH, index, (long) entries.entryCount, (long) entries.byteCount);
  }

  static void failed(FakeWorker.Frame channel, long index, int wireCode) throws IOException {
    channel.reply(MessageType.PARTITION_FAILED, index, (long) wireCode, false, "it failed", "");
  }

  static void end(FakeWorker.Frame channel) throws IOException {
    channel.reply(MessageType.READ_FINISH, 1L, 1L, 1L, 1L);
  }

  long credit(Message message) {
    assertEquals(Wire.NO_REGION, message.number("regionIndex"));
    return message.number("credit");
  }

  /** Every buffer is back where it came from. */
  void awaitAllReturned() throws Exception {
    Await.until(
        "all buffers are back", () -> buffers.getNumberOfAvailableMemorySegments() == BUFFERS);
  }


  @Override
  public void close() throws Exception {
    if (gate != null) {
      gate.close();
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
