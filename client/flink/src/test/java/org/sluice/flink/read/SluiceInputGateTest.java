package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.PullingAsyncDataInput.EndOfDataStatus;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.EndOfSuperstepEvent;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.apache.flink.runtime.io.network.partition.consumer.PartitionConnectionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.BlockCodec;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.support.Entries;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.PartitionList;
import org.sluice.flink.wire.Wire;

class SluiceInputGateTest {
  private GateFixture f;

  @BeforeEach
  void make() throws Exception {
    f = new GateFixture();
  }

  @AfterEach
  void end() throws Exception {
    f.close();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  // --- what is delivered ---

  @Test
  @DisplayName("nothing is asked of a worker before the task polls")
  void lazy() throws Exception {
    f.input(0, 3);
    f.open();
    assertTrue(f.gate.isAvailable(), "so that the task polls");
    assertEquals(0, f.worker.connectionCount());
    f.opened();
  }

  @Test
  @DisplayName("a range comes in order; its ends are told once, the last after the totals were right")
  void range() throws Exception {
    InputPartition input = f.input(1, 2);
    f.open();
    List<PartitionList.Entry> list = new ArrayList<>();
    FakeWorker.Frame channel = f.opened(f.worker, list);
    assertEquals(1, list.size());
    assertEquals(input.key, list.get(0).key);
    assertEquals(1, list.get(0).firstSubpartition);
    assertEquals(2, list.get(0).lastSubpartition);
    assertEquals(0, list.get(0).startBytes);
    Entries entries = new Entries(input.key);
    entries.run(0, 0, 1).data("one", false).data("two", true).run(0, 0, 2).data("three", true);
    GateFixture.ends(entries, 0, 1, 1);
    channel.reply(entries.body(), MessageType.READ_DATA);
    assertEquals("one", f.nextText());
    assertEquals("two", f.nextText());
    assertEquals("three", f.nextText());
    f.pollNothing();
    assertEquals(EndOfDataStatus.NOT_END_OF_DATA, f.gate.hasReceivedEndOfData());
    GateFixture.ends(entries, 0, 1, 2);
    channel.reply(entries.body(), MessageType.READ_DATA);
    BufferOrEvent endOfData = f.next();
    assertEquals(EndOfData.class, endOfData.getEvent().getClass());
    assertEquals(0, endOfData.getChannelInfo().getInputChannelIdx());
    assertEquals(EndOfDataStatus.DRAINED, f.gate.hasReceivedEndOfData());
    f.pollNothing();
    GateFixture.finish(channel, 0, entries);
    assertEquals(EndOfPartitionEvent.INSTANCE, f.next().getEvent());
    assertTrue(f.gate.isFinished());
    assertEquals(Optional.empty(), f.poll());
    assertTrue(f.gate.isAvailable(), "a gate that has ended is available for ever");
  }

  @Test
  @DisplayName("nothing in the range but ends is an ordinary end")
  void onlyEnds() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries entries = GateFixture.ends(new Entries(input.key), 0, 0, 0);
    channel.reply(entries.body(), MessageType.READ_DATA);
    GateFixture.finish(channel, 0, entries);
    assertEquals(EndOfData.class, f.next().getEvent().getClass());
    assertEquals(EndOfPartitionEvent.INSTANCE, f.next().getEvent());
    assertTrue(f.gate.isFinished());
  }

  @Test
  @DisplayName("an event keeps its place between the data around it")
  void events() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries entries = new Entries(input.key).run(0, 0, 0).data("before", false);
    entries.event(EndOfSuperstepEvent.INSTANCE, Wire.TYPE_END_OF_SUPERSTEP, false);
    channel.reply(entries.data("after", true).body(), MessageType.READ_DATA);
    assertEquals("before", f.nextText());
    assertEquals(EndOfSuperstepEvent.INSTANCE, f.next().getEvent());
    assertEquals("after", f.nextText());
  }

  @Test
  @DisplayName("compressed entries come as they were, raw ones beside them")
  void compressed() throws Exception {
    InputPartition input = f.input(f.worker, 0, 0, "lz4");
    f.open();
    FakeWorker.Frame channel = f.opened();
    byte[] text = bytes("again and ".repeat(100));
    BlockCodec codec = BlockCodec.of("lz4", Descriptors.BUFFER_SIZE - 64);
    int length = codec.compress(text, text.length);
    ByteBuffer payload = ByteBuffer.allocate(4 + length).putInt(text.length);
    codec.copyBlock(payload.array(), 4, length);
    Entries entries = new Entries(input.key).run(0, 0, 0);
    entries.entry(payload.array(), Wire.TYPE_DATA, Wire.FLAG_COMPRESSED, false);
    channel.reply(entries.data("raw", true).body(), MessageType.READ_DATA);
    assertEquals("again and ".repeat(100), f.nextText());
    assertEquals("raw", f.nextText());
  }

  @Test
  @DisplayName("inputs on several workers are read over one channel each")
  void workers() throws Exception {
    try (FakeWorker other = new FakeWorker("worker-2")) {
      InputPartition one = f.input(0, 0);
      InputPartition two = f.input(other, 0, 0, "none");
      InputPartition three = f.input(0, 0);
      f.open();
      List<PartitionList.Entry> first = new ArrayList<>();
      List<PartitionList.Entry> second = new ArrayList<>();
      f.opened(f.worker, first);
      f.opened(other, second);
      assertEquals(List.of(one.key, three.key), List.of(first.get(0).key, first.get(1).key));
      assertEquals(List.of(two.key), List.of(second.get(0).key));
    }
  }

  @Test
  @DisplayName("Flink gets an object of its own for each channel, with the subpartitions of its range")
  void standIns() throws Exception {
    f.input(1, 2);
    f.input(0, 3);
    f.open();
    assertEquals(2, f.gate.getNumberOfInputChannels());
    assertEquals(1, f.gate.getChannel(1).getChannelIndex());
    assertEquals(f.gate.getChannelInfos().get(1), f.gate.getChannel(1).getChannelInfo());
    Set<Integer> subpartitions = new HashSet<>();
    f.gate.getChannel(0).getConsumedSubpartitionIndexSet().values().forEach(subpartitions::add);
    assertEquals(Set.of(1, 2), subpartitions);
  }

  // --- credit ---

  @Test
  @DisplayName("credit is granted against backlog, and never beyond the buffers in hand")
  void credit() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    channel.reply(MessageType.BACKLOG, 3L);
    assertEquals(1, f.credit(f.await(f.worker, MessageType.ADD_CREDIT).message));
    channel.reply(MessageType.BACKLOG, 100L);
    assertEquals(
        GateFixture.BUFFERS - 3, f.credit(f.await(f.worker, MessageType.ADD_CREDIT).message));
    Entries entries = new Entries(input.key).run(0, 0, 0);
    channel.reply(entries.data("one", false).body(), MessageType.READ_DATA);
    BufferOrEvent first = f.next();
    f.pollNothing();
    assertEquals(0, f.worker.frameCount(), "the task still has the buffer");
    first.getBuffer().recycleBuffer();
    assertEquals(1, f.credit(f.await(f.worker, MessageType.ADD_CREDIT).message));
  }

  @Test
  @DisplayName("with less backlog left than credit outstanding nothing more is granted")
  void backlogEnds() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    f.readAllAnnounced(channel, input);
    // The answer to a second backlog shows that none was sent before it.
    channel.reply(MessageType.BACKLOG, 1L);
    assertEquals(1, f.credit(f.await(f.worker, MessageType.ADD_CREDIT).message));
  }

  @Test
  @DisplayName("data beyond credit ends the channel as PROTOCOL")
  void beyondCredit() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries entries = new Entries(input.key).run(0, 0, 0);
    for (int count = 0; count < 3; count++) {
      channel.reply(entries.data("more", false).body(), MessageType.READ_DATA);
    }
    assertEquals(ErrorCode.PROTOCOL, f.failure(ShuffleException.class).code());
  }

  @Test
  @DisplayName("as many channels are open as there are two buffers for; the next when one has ended")
  void turns() throws Exception {
    List<FakeWorker> workers = new ArrayList<>();
    for (int index = 0; index < 6; index++) {
      workers.add(new FakeWorker("many-" + index));
      f.input(workers.get(index), 0, 0, "none");
    }
    f.open();
    f.pollUntil("four are open", () -> withFrames(workers).size() == 4);
    FakeWorker ending = withFrames(workers).get(0);
    FakeWorker.Frame channel = f.opened(ending, new ArrayList<>());
    assertEquals(3, withFrames(workers).size());
    Entries entries = GateFixture.ends(new Entries(inputOn(ending).key), 0, 0, 0);
    channel.reply(entries.body(), MessageType.READ_DATA);
    GateFixture.finish(channel, 0, entries);
    GateFixture.end(channel);
    f.next();
    f.next();
    f.pollUntil("another one is opened", () -> withFrames(workers).size() == 4);
    for (FakeWorker worker : workers) {
      worker.close();
    }
  }

  private static List<FakeWorker> withFrames(List<FakeWorker> workers) {
    List<FakeWorker> found = new ArrayList<>(workers);
    found.removeIf(worker -> worker.frameCount() == 0);
    return found;
  }

  private InputPartition inputOn(FakeWorker worker) {
    for (InputPartition input : f.inputs) {
      if (input.descriptor.worker().equals(worker.address())) {
        return input;
      }
    }
    throw new AssertionError("no input there");
  }

  // --- what is wrong ---

  private void assertCorrupt(InputPartition input) throws Exception {
    PartitionNotFoundException failure = f.failure(PartitionNotFoundException.class);
    assertEquals(input.descriptor.getResultPartitionID(), failure.getPartitionId());
    f.manager.await("POST", "/reports");
  }

  @Test
  @DisplayName("a flipped byte, a repeated and a missing entry are found by the checksum, and not kept back")
  void checksum() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    byte[] body = new Entries(input.key).run(0, 0, 0).data("flipped", true).body();
    body[body.length - 1] ^= 1;
    channel.reply(body, MessageType.READ_DATA);
    assertCorrupt(input);
  }

  @Test
  @DisplayName("an entry that comes twice has the wrong position")
  void repeated() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    byte[] body = new Entries(input.key).run(0, 0, 0).data("once", false).body();
    channel.reply(body, MessageType.READ_DATA);
    channel.reply(body, MessageType.READ_DATA);
    assertEquals("once", f.nextText());
    assertCorrupt(input);
  }

  @Test
  @DisplayName("an entry that was left out shows in the position of the next")
  void leftOut() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    channel.reply(
        new Entries(input.key).run(0, 0, 0, 1).data("second", true).body(),
        MessageType.READ_DATA);
    assertCorrupt(input);
  }

  @Test
  @DisplayName("an entry of another partition is found by the checksum")
  void stranger() throws Exception {
    InputPartition input = f.input(0, 0);
    InputPartition other = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    channel.reply(
        new Entries(other.key).run(0, 0, 0).data("not his", true).body(), MessageType.READ_DATA);
    assertCorrupt(input);
  }

  @Test
  @DisplayName("runs out of order, out of the range or cut short are corrupt")
  void runs() throws Exception {
    int[][][] wrong = {
      {{0, 1}, {0, 0}}, {{1, 0}, {0, 1}}, {{0, 3}}, {{0, -1}},
    };
    for (int[][] order : wrong) {
      f.close();
      f = new GateFixture();
      InputPartition input = f.input(0, 1);
      f.open();
      FakeWorker.Frame channel = f.opened();
      Entries entries = new Entries(input.key);
      for (int[] run : order) {
        entries.run(0, run[0], run[1]).data("x", true);
      }
      channel.reply(entries.body(), MessageType.READ_DATA);
      assertCorrupt(input);
    }
  }

  @Test
  @DisplayName("a run without its last entry is corrupt")
  void cutRun() throws Exception {
    InputPartition input = f.input(0, 1);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries entries = new Entries(input.key).run(0, 0, 0).data("x", false).run(0, 0, 1);
    channel.reply(entries.data("y", true).body(), MessageType.READ_DATA);
    assertEquals("x", f.nextText());
    assertCorrupt(input);
  }

  @Test
  @DisplayName("other totals than were received, or too few ends, are miscounted data")
  void totals() throws Exception {
    for (int missing = 0; missing < 2; missing++) {
      f.close();
      f = new GateFixture();
      InputPartition input = f.input(0, 0);
      f.open();
      FakeWorker.Frame channel = f.opened();
      Entries entries = new Entries(input.key).run(0, 0, 0).data("x", true);
      if (missing == 0) {
        GateFixture.ends(entries, 0, 1, 0);
        entries.entryCount++;
      }
      channel.reply(entries.body(), MessageType.READ_DATA);
      GateFixture.finish(channel, 0, entries);
      assertCorrupt(input);
      assertEquals(
          "COUNT_MISMATCH",
          f.manager.await("POST", "/reports").body.at("/failures/0/code").asText());
    }
  }

  @Test
  @DisplayName("too many ends, an event that can't be read, and what can't be uncompressed are corrupt")
  void nonsense() throws Exception {
    for (int kind = 0; kind < 4; kind++) {
      f.close();
      f = new GateFixture();
      InputPartition input = f.input(f.worker, 0, 0, kind == 2 ? "none" : "lz4");
      f.open();
      FakeWorker.Frame channel = f.opened();
      Entries entries = new Entries(input.key).run(0, 0, 0);
      if (kind == 0) {
        entries
            .event(EndOfPartitionEvent.INSTANCE, Wire.TYPE_END_OF_PARTITION, false)
            .event(EndOfPartitionEvent.INSTANCE, Wire.TYPE_END_OF_PARTITION, true);
      } else if (kind == 1) {
        entries.entry(bytes("no event"), Wire.TYPE_RUNTIME_EVENT, 0, true);
      } else {
        byte[] block = ByteBuffer.allocate(20).putInt(kind == 2 ? 10 : 1_000_000).array();
        entries.entry(block, Wire.TYPE_DATA, Wire.FLAG_COMPRESSED, true);
      }
      channel.reply(entries.body(), MessageType.READ_DATA);
      assertCorrupt(input);
    }
  }

  @Test
  @DisplayName("a partition that is not listed is the worker's fault: PROTOCOL")
  void notListed() throws Exception {
    f.input(0, 0);
    f.open();
    f.opened().reply(MessageType.PARTITION_FINISH, 7L, 0L, 0L);
    assertEquals(ErrorCode.PROTOCOL, f.failure(ShuffleException.class).code());
  }

  // --- cancelling, from another thread than the task's ---

  private void closeFromElsewhere() throws Exception {
    Thread canceler = new Thread(f.gate::close, "canceler");
    canceler.start();
    canceler.join(Await.DEADLINE_MS);
    assertFalse(canceler.isAlive());
    assertThrows(CancelTaskException.class, () -> f.poll());
    assertTrue(f.gate.isAvailable(), "whoever waits hears of it");
    f.awaitAllReturned();
    f.gate.close();
  }

  @Test
  @DisplayName("cancelled before it polled, it gives everything back")
  void closedUnused() throws Exception {
    f.input(0, 0);
    f.open();
    closeFromElsewhere();
    assertEquals(0, f.worker.connectionCount());
  }

  @Test
  @DisplayName("cancelled while it waits for a connection, it gives everything back")
  void closedConnecting() throws Exception {
    f.worker.manners.isSilent = true;
    f.input(0, 0);
    f.open();
    f.pollUntil("it dials", () -> f.worker.connectionCount() == 1);
    closeFromElsewhere();
  }

  @Test
  @DisplayName("without buffers no channel is opened; it is when they come back")
  void waitsForBuffers() throws Exception {
    f.input(0, 0);
    f.open();
    List<MemorySegment> taken = takeAll();
    f.pollUntil("it is connected", () -> f.worker.connectionCount() == 1);
    f.pollNothing();
    assertEquals(0, f.worker.frameCount());
    taken.forEach(f.pool::recycle);
    f.opened();
  }

  @Test
  @DisplayName("a connection that ends while it waits for buffers is made again, and is no failure")
  void connectsAgain() throws Exception {
    f.unreachableMs = 0;
    f.input(0, 0);
    f.open();
    List<MemorySegment> taken = takeAll();
    f.pollUntil("it waits for them", f::isWaitingForBuffers);
    f.worker.cutConnections();
    f.pollUntil("the connection is gone", () -> f.connectionCount() == 0);
    taken.forEach(f.pool::recycle);
    f.opened();
    assertEquals(0, f.metrics.count("readRetries"));
  }

  @Test
  @DisplayName("a worker that is gone when there are buffers at last keeps none of them")
  void goneAfterWaiting() throws Exception {
    f.unreachableMs = 0;
    f.failureDelayMs = 0;
    f.input(0, 0);
    f.open();
    List<MemorySegment> taken = takeAll();
    f.pollUntil("it waits for them", f::isWaitingForBuffers);
    f.worker.close();
    f.pollUntil("the connection is gone", () -> f.connectionCount() == 0);
    taken.forEach(f.pool::recycle);
    f.failure(PartitionConnectionException.class);
    closeFromElsewhere();
  }

  private List<MemorySegment> takeAll() {
    List<MemorySegment> taken = new ArrayList<>();
    for (int count = 0; count < GateFixture.BUFFERS; count++) {
      taken.add(f.pool.requestMemorySegment());
    }
    return taken;
  }

  @Test
  @DisplayName("cancelled while it waits for buffers, it takes none any more")
  void closedForBuffers() throws Exception {
    f.input(0, 0);
    f.open();
    List<MemorySegment> taken = takeAll();
    f.pollUntil("it is connected", () -> f.worker.connectionCount() == 1);
    Thread canceler = new Thread(f.gate::close, "canceler");
    canceler.start();
    canceler.join(Await.DEADLINE_MS);
    assertThrows(CancelTaskException.class, () -> f.poll());
    taken.forEach(f.pool::recycle);
    f.awaitAllReturned();
    assertEquals(0, f.worker.frameCount());
  }

  @Test
  @DisplayName("cancelled while it waits for data, it closes its channel and gives everything back")
  void closedWaiting() throws Exception {
    f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    channel.reply(MessageType.BACKLOG, 100L);
    f.await(f.worker, MessageType.ADD_CREDIT);
    f.pollNothing();
    closeFromElsewhere();
    assertEquals(channel.channelId, f.worker.await(MessageType.CLOSE_CHANNEL).channelId);
  }

  @Test
  @DisplayName("cancelled with data that nobody fetched, and with a body under way, it gives everything back")
  void closedWithData() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    Entries entries = new Entries(input.key).run(0, 0, 0);
    channel.reply(entries.data("one", false).data("two", false).body(), MessageType.READ_DATA);
    channel.reply(entries.data("three", false).body(), MessageType.READ_DATA);
    assertEquals("one", f.nextText());
    closeFromElsewhere();
    channel.reply(entries.data("late", true).body(), MessageType.READ_DATA);
    f.worker.await(MessageType.CLOSE_CHANNEL);
    f.awaitAllReturned();
  }

  @Test
  @DisplayName("cancelled while a failure is kept back, it is cancelled and not failed")
  void closedWhileKeptBack() throws Exception {
    f.input(0, 0);
    f.open();
    GateFixture.failed(f.opened(), 0, ErrorCode.PARTITION_NOT_FOUND.wireCode());
    f.pollUntil("it is reported", () -> !f.manager.calls("POST", "/reports").isEmpty());
    closeFromElsewhere();
  }

  @Test
  @DisplayName("the time in which the gate had nothing is counted")
  void waitForData() throws Exception {
    InputPartition input = f.input(0, 0);
    f.open();
    FakeWorker.Frame channel = f.opened();
    f.pollNothing();
    long began = System.nanoTime();
    Await.until("some milliseconds pass", () -> System.nanoTime() - began > 5_000_000);
    channel.reply(
        new Entries(input.key).run(0, 0, 0).data("x", true).body(), MessageType.READ_DATA);
    assertEquals("x", f.nextText());
    assertTrue(f.metrics.count("waitForDataMs") >= 5);
  }
}
