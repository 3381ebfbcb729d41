package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.AvailabilityProvider.AvailabilityHelper;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.wire.MessageType;

/** A read channel by itself, with the memory of a gate that has two buffers. */
class ReadChannelTest {
  private final NetworkBufferPool buffers = new NetworkBufferPool(2, Descriptors.BUFFER_SIZE);
  private final ConnectionPool connections =
      new ConnectionPool(
          new ConnectionPool.Settings(FakeWorker.CLUSTER, null, 1, 5_000, 10_000, "test"));
  private FakeWorker worker;
  private BufferPool pool;
  private GateQueue queue;
  private GateMemory memory;

  @BeforeEach
  void make() throws Exception {
    worker = new FakeWorker("worker-1");
    pool = buffers.createBufferPool(2, 2);
    queue = new GateQueue(new AvailabilityHelper());
    memory = new GateMemory(pool, queue);
  }

  @AfterEach
  void end() throws Exception {
    queue.close();
    memory.close();
    pool.lazyDestroy();
    Await.until(
        "all buffers are back", () -> buffers.getNumberOfAvailableMemorySegments() == 2);
    connections.close();
    worker.close();
    buffers.destroy();
  }

  private ReadChannel open() throws Exception {
    WorkerReader reader = new WorkerReader(worker.address());
    InputPartition input =
        new InputPartition(0, new Descriptors().next(worker.address(), 4, "none"), 0, 0);
    ReadChannel channel =
        new ReadChannel(queue, memory, reader, List.of(input), Descriptors.BUFFER_SIZE);
    memory.requestInitial(reader);
    channel.open(
        connections.connect(worker.address()).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS),
        ((GateQueue.Buffers) queue.poll()).buffers);
    return channel;
  }

  private GateQueue.Item next() throws Exception {
    Await.until("something comes", () -> !queue.isEmpty());
    return queue.poll();
  }

  @Test
  @DisplayName("a worker has its whole time from when there is credit again, however long there was none")
  void creditAfterLong() throws Exception {
    ReadChannel channel = open();
    FakeWorker.Frame frame = worker.await(MessageType.OPEN_READ);
    frame.reply(MessageType.BACKLOG, 3L);
    frame.reply(new byte[] {1}, MessageType.READ_DATA);
    frame.reply(new byte[] {2}, MessageType.READ_DATA);
    List<GateQueue.Item> bodies = List.of(next(), next());
    long heard = System.nanoTime();
    Await.until("some time passes", () -> System.nanoTime() - heard > 200_000_000);
    assertEquals(0, channel.silentMs(), "it is not the worker's turn");
    long before = System.nanoTime();
    bodies.forEach(GateQueue.Item::discard);
    memory.divide();
    worker.await(MessageType.ADD_PARTITIONS);
    worker.await(MessageType.READ_END);
    worker.await(MessageType.ADD_CREDIT);
    long silentMs = channel.silentMs();
    long sinceMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before);
    assertTrue(silentMs <= sinceMs, silentMs + " ms, but it has had credit for " + sinceMs);
  }
}
