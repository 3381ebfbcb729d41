package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.consumer.PartitionConnectionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Entries;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.PartitionList;
import org.sluice.flink.wire.Wire;

/** A gate whose workers, channels or partitions are lost. */
class GateLossTest {
  private GateFixture f;

  @BeforeEach
  void make() throws Exception {
    f = new GateFixture();
  }

  @AfterEach
  void end() throws Exception {
    f.close();
  }

  // --- what is lost and comes back ---

  @Test
  @DisplayName("after a lost connection each input goes on behind its last entry, and the totals count all")
  void resume() throws Exception {
    InputPartition done = f.input(0, 0);
    InputPartition begun = f.input(0, 1);
    InputPartition untouched = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries first = GateFixture.ends(new Entries(done.key), 0, 0, 0);
    channel.reply(first.body(), MessageType.READ_DATA);
    GateFixture.finish(channel, 0, first);
    Entries second = new Entries(begun.key);
    second.run(1, 0, 0).data("one", true).run(1, 0, 1).data("two", false);
    channel.reply(second.body(), MessageType.READ_DATA);
    f.next();
    f.next();
    assertEquals("one", f.nextText());
    assertEquals("two", f.nextText());
    channel.cutConnection();
    List<PartitionList.Entry> list = new ArrayList<>();
    FakeWorker.Frame again = f.opened(f.worker, list);
    assertEquals(List.of(begun.key, untouched.key), List.of(list.get(0).key, list.get(1).key));
    assertEquals(0, list.get(0).startRegion);
    assertEquals(1, list.get(0).startSubpartition);
    assertEquals(Wire.ENTRY_HEADER_LENGTH + 3, list.get(0).startBytes);
    assertEquals(0, list.get(1).startBytes);
    second.run(0, 0, 1, 1).data("three", true);
    GateFixture.ends(second, 0, 1, 0);
    GateFixture.ends(second, 0, 1, 1);
    again.reply(second.body(), MessageType.READ_DATA);
    GateFixture.finish(again, 0, second);
    assertEquals("three", f.nextText());
    assertEquals(EndOfData.class, f.next().getEvent().getClass());
    assertEquals(EndOfPartitionEvent.INSTANCE, f.next().getEvent());
    assertEquals(1, f.metrics.count("readRetries"));
  }

  @Test
  @DisplayName("a worker that loses every connection keeps no room from the one that is read at last")
  void manyLosses() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    for (int count = 0; count < 6; count++) {
      f.opened().cutConnection();
    }
    FakeWorker.Frame channel = f.opened();
    channel.reply(MessageType.BACKLOG, 100L);
    assertEquals(
        GateFixture.BUFFERS - 2, f.credit(f.await(f.worker, MessageType.ADD_CREDIT).message));
    channel.reply(
        new Entries(input.key).run(0, 0, 0).data("at last", true).body(), MessageType.READ_DATA);
    assertEquals("at last", f.nextText());
    assertEquals(6, f.metrics.count("readRetries"));
  }

  @Test
  @DisplayName("what is not ready is asked for again on another channel")
  void notReady() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    GateFixture.failed(channel, 0, ErrorCode.PARTITION_NOT_READY.wireCode());
    GateFixture.end(channel);
    FakeWorker.Frame again = f.opened();
    again.reply(
        new Entries(input.key).run(0, 0, 0).data("ready", true).body(), MessageType.READ_DATA);
    assertEquals("ready", f.nextText());
    assertEquals(1, f.metrics.count("readRetries"));
  }

  @Test
  @DisplayName("what is never ready is produced again, what is always busy is not")
  void neverReady() throws Exception {
    f.retryMs = 0;
    f.failureDelayMs = 0;
    f.input(0, 0);
    f.open();
    GateFixture.failed(f.opened(), 0, ErrorCode.PARTITION_NOT_READY.wireCode());
    f.failure(PartitionNotFoundException.class);
  }

  @Test
  @DisplayName("what is always busy is an IOException with the code: the consumer alone tries again")
  void alwaysBusy() throws Exception {
    f.retryMs = 0;
    f.input(0, 0);
    f.open();
    GateFixture.failed(f.opened(), 0, ErrorCode.BUSY.wireCode());
    assertEquals(ErrorCode.BUSY, f.failure(ShuffleException.class).code());
  }

  @Test
  @DisplayName("a worker that is busy when it can be reached again is given the time of a busy one")
  void busyAfterLosses() throws Exception {
    f.retryMs = 300;
    f.input(0, 0);
    f.open();
    // With the pauses between them they take longer than that.
    for (int count = 0; count < 4; count++) {
      f.opened().cutConnection();
    }
    FakeWorker.Frame channel = f.opened();
    GateFixture.failed(channel, 0, ErrorCode.BUSY.wireCode());
    GateFixture.end(channel);
    f.opened();
  }

  @Test
  @DisplayName("what of a failed input was under way is skipped, and the others go on until it is told")
  void dataAfterFailure() throws Exception {
    InputPartition failing = f.input(0, 0);
    InputPartition other = f.input(0, 0);
    f.failureDelayMs = 300;
    f.open();
    FakeWorker.Frame channel = f.opened();
    GateFixture.failed(channel, 0, ErrorCode.DISK_FAILED.wireCode());
    channel.reply(
        new Entries(failing.key).run(0, 0, 0).data("too late", true).body(), MessageType.READ_DATA);
    channel.reply(
        new Entries(other.key).run(1, 0, 0).data("in time", true).body(), MessageType.READ_DATA);
    assertEquals("in time", f.nextText());
    assertEquals(
        failing.descriptor.getResultPartitionID(),
        f.failure(PartitionNotFoundException.class).getPartitionId());
  }

  @Test
  @DisplayName("a worker that ends a channel before its list breaks the protocol; no gate waits for it")
  void endsEarly() throws Exception {
    f.input(0, 0);
    f.open();
    GateFixture.end(f.opened());
    assertEquals(ErrorCode.PROTOCOL, f.failure(ShuffleException.class).code());
  }

  @Test
  @DisplayName("a channel that has credit and is silent for too long is closed and opened again")
  void idle() throws Exception {
    f.idleMs = 1;
    f.input(0, 0);
    f.open();
    FakeWorker.Frame first = awaitFirst(MessageType.OPEN_READ);
    assertEquals(first.channelId, awaitFirst(MessageType.CLOSE_CHANNEL).channelId);
    awaitFirst(MessageType.OPEN_READ);
  }

  @Test
  @DisplayName("so is one whose worker has said that it has nothing more, and sends no end")
  void owesTheEnd() throws Exception {
    f.idleMs = 300;
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    f.readAllAnnounced(channel, input);
    assertEquals(channel.channelId, awaitFirst(MessageType.CLOSE_CHANNEL).channelId);
  }

  private FakeWorker.Frame awaitFirst(MessageType type) throws Exception {
    while (true) {
      f.pollUntil("a frame comes", () -> f.worker.frameCount() > 0);
      FakeWorker.Frame frame = f.worker.awaitAny();
      if (frame.message.type() == type) {
        return frame;
      }
    }
  }

  // --- what is lost ---

  @Test
  @DisplayName("a lost partition is reported, its failure kept back, and other inputs go on meanwhile")
  void keptBack() throws Exception {
    InputPartition lost = f.input(0, 0);
    InputPartition other = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    GateFixture.failed(channel, 0, ErrorCode.PARTITION_NOT_FOUND.wireCode());
    f.pollUntil("it is reported", () -> !f.manager.calls("POST", "/reports").isEmpty());
    FakeManager.Call report = f.manager.calls("POST", "/reports").get(0);
    assertEquals("PARTITION_NOT_FOUND", report.body.at("/failures/0/code").asText());
    assertEquals(lost.key.attemptId(), report.body.at("/failures/0/attemptId").asText());
    assertEquals("worker-1", report.body.at("/failures/0/workerId").asText());
    channel.reply(
        new Entries(other.key).run(1, 0, 0).data("other", true).body(), MessageType.READ_DATA);
    assertEquals("other", f.nextText());
    f.pollNothing();
  }

  @Test
  @DisplayName("after the delay the failure names the partition that was lost first")
  void afterDelay() throws Exception {
    f.failureDelayMs = 20;
    InputPartition lost = f.input(0, 0);
    f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    GateFixture.failed(channel, 0, ErrorCode.DISK_FAILED.wireCode());
    GateFixture.failed(channel, 1, ErrorCode.PARTITION_RELEASED.wireCode());
    assertEquals(
        lost.descriptor.getResultPartitionID(),
        f.failure(PartitionNotFoundException.class).getPartitionId());
  }

  @Test
  @DisplayName("a worker that stays away beyond the recovery time is a lost connection to the partition")
  void workerGone() throws Exception {
    f.unreachableMs = 0;
    f.failureDelayMs = 20;
    InputPartition input = f.input(0, 0);
    f.worker.close();
    f.open();
    assertEquals(
        input.descriptor.getResultPartitionID(),
        f.failure(PartitionConnectionException.class).getPartitionId());
  }

  @Test
  @DisplayName("within the recovery time an absent worker is dialled again and again")
  void workerAway() throws Exception {
    int port = f.worker.port();
    f.input(0, 0);
    f.worker.close();
    f.open();
    f.pollUntil("it is tried again", () -> f.metrics.count("readRetries") >= 2);
    try (FakeWorker back = new FakeWorker("worker-1", new FakeWorker.Manners(), port)) {
      f.opened(back, new ArrayList<>());
    }
  }

  @Test
  @DisplayName("a segment size above the workers' buffer size is refused by name")
  void bufferSize() throws Exception {
    f.worker.manners.bufferSizeBytes = 2048;
    f.input(0, 0);
    f.open();
    ShuffleException refusal = f.failure(ShuffleException.class);
    assertEquals(ErrorCode.LIMIT_EXCEEDED, refusal.code());
    assertTrue(refusal.getMessage().contains("taskmanager.memory.segment-size"));
  }
}
