package org.sluice.flink.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.sluice.flink.write.PartitionFixture.record;
import static org.sluice.flink.write.PartitionFixture.task;

import java.nio.ByteBuffer;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.support.TaskThread;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.MessageType;

/** The write channel, as a result partition uses it. */
class WriteChannelTest {
  private PartitionFixture f;

  @BeforeEach
  void make() throws Exception {
    f = new PartitionFixture();
  }

  @AfterEach
  void end() throws Exception {
    f.close();
  }

  private TaskThread<Void> finishing() throws Exception {
    f.open(2);
    return task(f.partition::finish);
  }

  private static ErrorCode codeOf(TaskThread<Void> task) throws Exception {
    Throwable failure = task.failure();
    assertEquals(ShuffleException.class, failure.getClass(), String.valueOf(failure));
    return ((ShuffleException) failure).code();
  }

  private static void assertCancelled(TaskThread<Void> task) throws Exception {
    assertEquals(CancelTaskException.class, task.failure().getClass());
  }

  // --- credit ---

  @Test
  @DisplayName("the first region follows the opening at once; its data waits for credit")
  void waitsForCredit() throws Exception {
    TaskThread<Void> task = finishing();
    FakeWorker.Frame open = f.worker.await(MessageType.OPEN_WRITE);
    FakeWorker.Frame start = f.worker.await(MessageType.REGION_START);
    open.reply(MessageType.WRITE_OPENED);
    task.awaitBlocked();
    assertEquals(0, f.worker.frameCount());
    long began = System.nanoTime();
    Await.until("some milliseconds pass", () -> System.nanoTime() - began > 5_000_000);
    f.credit(start, 1);
    FakeWorker.Frame data = f.worker.await(MessageType.WRITE_DATA);
    assertEquals(0, data.message.number("regionIndex"));
    f.worker.await(MessageType.REGION_FINISH);
    f.commit(1, 1, data.body.length);
    task.get();
    assertTrue(f.metrics.count("waitForCreditMs") >= 5);
    assertEquals(0, f.metrics.count("openRetries"));
  }

  @Test
  @DisplayName("one credit is one body; credit of another region counts for nothing")
  void creditByRegion() throws Exception {
    f.open(2);
    ByteBuffer record = ByteBuffer.allocate(10_000);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(record, 0);
              f.partition.finish();
            });
    f.opened();
    FakeWorker.Frame start = f.worker.await(MessageType.REGION_START);
    start.reply(MessageType.ADD_CREDIT, 5L, 7L);
    task.awaitBlocked();
    f.credit(start, 1);
    f.worker.await(MessageType.WRITE_DATA);
    task.awaitBlocked();
    assertEquals(0, f.worker.frameCount());
    f.credit(start, 5);
    f.worker.await(MessageType.WRITE_DATA);
    f.worker.await(MessageType.WRITE_DATA);
    f.worker.await(MessageType.REGION_FINISH);
    // What was left of the first region's credit is gone; what comes late for it, too.
    FakeWorker.Frame next = f.worker.await(MessageType.REGION_START);
    assertEquals(1, next.message.number("regionIndex"));
    f.credit(start, 5);
    task.awaitBlocked();
    assertEquals(0, f.worker.frameCount());
  }

  // --- failing ---

  @Test
  @DisplayName("an error of the worker ends the wait with its code")
  void workerError() throws Exception {
    for (ErrorCode code :
        new ErrorCode[] {
          ErrorCode.NO_SPACE, ErrorCode.WRITER_CONFLICT, ErrorCode.STALE_ALLOCATION,
          ErrorCode.WORKER_DRAINING, ErrorCode.DISK_FAILED
        }) {
      f.close();
      f = new PartitionFixture();
      TaskThread<Void> task = finishing();
      f.opened().reply(MessageType.ERROR, (long) code.wireCode(), false, "so it is", "");
      assertEquals(code, codeOf(task));
    }
  }

  @Test
  @DisplayName("what can't be cured on a retry restarts nothing: another configuration is needed")
  void finalError() throws Exception {
    f.worker.manners.clusterId = "elsewhere";
    TaskThread<Void> task = finishing();
    Throwable failure = task.failure();
    assertEquals(
        org.apache.flink.runtime.execution.SuppressRestartsException.class, failure.getClass());
  }

  @Test
  @DisplayName("a connection that is lost while the write is open interrupts it")
  void interrupted() throws Exception {
    f.open(2);
    TaskThread<Void> task =
        task(
            () -> {
              f.partition.emitRecord(ByteBuffer.allocate(10_000), 0);
              f.partition.finish();
            });
    f.opened();
    f.credit(f.worker.await(MessageType.REGION_START), 1);
    f.worker.await(MessageType.WRITE_DATA).cutConnection();
    assertEquals(ErrorCode.WRITE_INTERRUPTED, codeOf(task));
    assertEquals(1, f.worker.connectionCount());
  }

  @Test
  @DisplayName("a connection that is lost before the write is open is tried again, with the same region")
  void openedAgain() throws Exception {
    TaskThread<Void> task = finishing();
    f.worker.await(MessageType.OPEN_WRITE);
    f.worker.await(MessageType.REGION_START).cutConnection();
    f.opened();
    PartitionFixture.Region region = f.region();
    f.commit(1, 1, region.byteCount);
    task.get();
    assertEquals(1, f.metrics.count("openRetries"));
  }

  @Test
  @DisplayName("a busy worker is asked again; one that stays so beyond the deadline fails the attempt")
  void busy() throws Exception {
    TaskThread<Void> task = finishing();
    FakeWorker.Frame open = f.worker.await(MessageType.OPEN_WRITE);
    open.reply(MessageType.ERROR, (long) ErrorCode.BUSY.wireCode(), true, "busy", "");
    f.worker.await(MessageType.REGION_START);
    f.opened();
    PartitionFixture.Region region = f.region();
    f.commit(1, 1, region.byteCount);
    task.get();
    f.close();
    f = new PartitionFixture();
    f.openMs = 0;
    TaskThread<Void> impatient = finishing();
    f.worker
        .await(MessageType.OPEN_WRITE)
        .reply(MessageType.ERROR, (long) ErrorCode.BUSY.wireCode(), true, "busy", "");
    assertEquals(ErrorCode.BUSY, codeOf(impatient));
  }

  @Test
  @DisplayName("nobody there beyond the deadline fails the attempt")
  void nobody() throws Exception {
    f.openMs = 1;
    f.worker.close();
    assertEquals(ErrorCode.WORKER_UNREACHABLE, codeOf(finishing()));
  }

  @Test
  @DisplayName("a worker that grants nothing within the deadline of a region interrupts the write")
  void regionDeadline() throws Exception {
    f.regionMs = 1;
    TaskThread<Void> task = finishing();
    f.opened();
    f.worker.await(MessageType.REGION_START);
    assertEquals(ErrorCode.WRITE_INTERRUPTED, codeOf(task));
    f.worker.await(MessageType.CLOSE_CHANNEL);
  }

  @Test
  @DisplayName("a commit that is not answered within its deadline has failed")
  void commitDeadline() throws Exception {
    f.commitMs = 1;
    TaskThread<Void> task = finishing();
    f.opened();
    f.region();
    f.worker.await(MessageType.WRITE_FINISH);
    assertEquals(ErrorCode.WRITE_INTERRUPTED, codeOf(task));
    f.worker.await(MessageType.CLOSE_CHANNEL);
  }

  @Test
  @DisplayName("a segment size above the workers' buffer size is refused by name")
  void bufferSize() throws Exception {
    f.worker.manners.bufferSizeBytes = 2048;
    TaskThread<Void> task = finishing();
    Throwable failure = task.failure();
    assertEquals(ErrorCode.LIMIT_EXCEEDED, ((ShuffleException) failure).code());
    assertTrue(failure.getMessage().contains("taskmanager.memory.segment-size"));
  }

  // --- cancelling, from another thread than the task's ---

  private void cancel() throws Exception {
    f.partition.fail(new Exception("cancelled"));
  }

  @Test
  @DisplayName("cancelled while it waits for a connection")
  void cancelledConnecting() throws Exception {
    f.worker.manners.isSilent = true;
    TaskThread<Void> task = finishing();
    Await.until("it dials", () -> f.worker.connectionCount() == 1);
    task.awaitBlocked();
    cancel();
    assertCancelled(task);
  }

  @Test
  @DisplayName("cancelled while it waits for the opening, it closes the channel")
  void cancelledOpening() throws Exception {
    TaskThread<Void> task = finishing();
    FakeWorker.Frame open = f.worker.await(MessageType.OPEN_WRITE);
    f.worker.await(MessageType.REGION_START);
    task.awaitBlocked();
    cancel();
    assertCancelled(task);
    assertEquals(open.channelId, f.worker.await(MessageType.CLOSE_CHANNEL).channelId);
  }

  @Test
  @DisplayName("cancelled while it waits to try again")
  void cancelledPausing() throws Exception {
    TaskThread<Void> task = finishing();
    f.worker.close();
    Await.until("it has tried a few times", () -> f.metrics.count("openRetries") >= 3);
    cancel();
    assertCancelled(task);
  }

  @Test
  @DisplayName("cancelled while it waits for credit, it closes the channel")
  void cancelledForCredit() throws Exception {
    TaskThread<Void> task = finishing();
    f.opened();
    f.worker.await(MessageType.REGION_START);
    task.awaitBlocked();
    cancel();
    assertCancelled(task);
    f.worker.await(MessageType.CLOSE_CHANNEL);
  }

  @Test
  @DisplayName("cancelled while it waits for the commit, it closes the channel")
  void cancelledCommitting() throws Exception {
    TaskThread<Void> task = finishing();
    f.opened();
    f.region();
    f.worker.await(MessageType.WRITE_FINISH);
    task.awaitBlocked();
    cancel();
    assertCancelled(task);
    f.worker.await(MessageType.CLOSE_CHANNEL);
  }

  @Test
  @DisplayName("an interrupt of the task's thread ends the wait too, and is passed on")
  void interruptedThread() throws Exception {
    f.open(2);
    boolean[] isStillInterrupted = new boolean[1];
    TaskThread<Void> task =
        task(
            () -> {
              try {
                f.partition.emitRecord(record("x"), 0);
                f.partition.finish();
              } finally {
                isStillInterrupted[0] = Thread.currentThread().isInterrupted();
              }
            });
    f.opened();
    f.worker.await(MessageType.REGION_START);
    task.awaitBlocked();
    task.interrupt();
    assertCancelled(task);
    assertTrue(isStillInterrupted[0]);
  }

  @Test
  @DisplayName("a committed write is not closed again when the task is cleaned up")
  void committed() throws Exception {
    TaskThread<Void> task = finishing();
    f.opened();
    PartitionFixture.Region region = f.region();
    f.commit(1, 1, region.byteCount);
    task.get();
    f.partition.close();
    f.partition.fail(null);
    f.awaitAllReturned();
    assertEquals(0, f.worker.frameCount());
  }
}
