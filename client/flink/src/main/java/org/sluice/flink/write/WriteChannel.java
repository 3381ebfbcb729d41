package org.sluice.flink.write;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.transport.ChannelHandler;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.transport.WorkerChannel;
import org.sluice.flink.transport.WorkerConnection;
import org.sluice.flink.wire.ByteCounts;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;

/**
 * The producer's end of a write: opens it, starts and finishes regions, sends bodies under credit,
 * commits. The task thread calls and waits; everything it waits for ends with the first of the
 * answer, the deadline, the worker's error, the end of the connection, and {@link #cancel}.
 */
final class WriteChannel {
  private static final long BACK_OFF_FIRST_MS = 50;
  private static final long BACK_OFF_MAX_MS = 2_000;

  private final SluiceShuffleDescriptor descriptor;
  private final WriteSettings settings;
  private final Counter waitForCreditMs;
  private final Counter retries;

  private final Dial dial;
  /** Guards all that the threads of connections and of cancelling touch. */
  private final TaskWaits waits = new TaskWaits();
  private WorkerChannel channel;
  private Answers answers;
  private boolean isOpened;
  private int regionIndex = -1;
  private long credit;
  private Message committed;

  private long regionEntries;
  private long regionBytes;
  private long totalEntries;
  private long totalBytes;

  WriteChannel(
      SluiceShuffleDescriptor descriptor,
      Locator locator,
      WriteSettings settings,
      Counter waitForCreditMs,
      Counter retries) {
    this.descriptor = descriptor;
    this.dial = new Dial(descriptor, locator);
    this.settings = settings;
    this.waitForCreditMs = waitForCreditMs;
    this.retries = retries;
  }

  int regionIndex() {
    return regionIndex;
  }

  /** Begins the next region, all of which must lie in memory; the first one opens the write. */
  void startRegion(boolean isBroadcast, long boundBytes) throws IOException, InterruptedException {
    Message start =
        new Message(MessageType.REGION_START, (long) (regionIndex + 1), isBroadcast, boundBytes);
    synchronized (waits) {
      waits.throwIfFailed();
      regionIndex++;
      credit = 0;
    }
    if (channel == null) {
      openWithRetries(start);
    } else {
      channel.send(start);
    }
    regionEntries = 0;
    regionBytes = 0;
  }

  /** Sends one body as soon as there is credit; the memory is released on every path. */
  void send(NetworkBuffer body, int entryCount) throws IOException, InterruptedException {
    boolean isSent = false;
    try {
      takeCredit();
      int length = body.readableBytes();
      regionEntries += entryCount;
      regionBytes += length;
      totalEntries += entryCount;
      totalBytes += length;
      isSent = true;
      channel.send(new Message(MessageType.WRITE_DATA, (long) regionIndex), body);
    } finally {
      if (!isSent) {
        body.recycleBuffer();
      }
    }
  }

  private void takeCredit() throws IOException, InterruptedException {
    synchronized (waits) {
      waits.throwIfFailed();
      if (credit == 0) {
        long start = System.nanoTime();
        try {
          awaitUntil(
              () -> credit > 0,
              settings.regionMs,
              "the worker granted no credit for a region within its deadline");
        } finally {
          waitForCreditMs.inc(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
        }
      }
      credit--;
    }
  }

  void finishRegion() {
    synchronized (waits) {
      credit = 0;
    }
    channel.send(
        new Message(MessageType.REGION_FINISH, (long) regionIndex, regionEntries, regionBytes));
  }

  /** Commits; returns when the partition can be read. */
  void finish(long recordCount, long[] bytesBySubpartition)
      throws IOException, InterruptedException {
    if (channel == null) {
      openWithRetries(null);
    }
    List<byte[]> pages = ByteCounts.pages(bytesBySubpartition);
    for (int page = 0; page < pages.size(); page++) {
      channel.send(
          new Message(
              MessageType.WRITE_FINISH,
              (long) (regionIndex + 1),
              totalBytes,
              recordCount,
              (long) page * ByteCounts.countsPerPage(),
              page == pages.size() - 1),
          pages.get(page));
    }
    synchronized (waits) {
      awaitUntil(
          () -> committed != null, settings.commitMs, "the commit was not answered in time");
      channel.forget();
      if (committed.number("byteCount") != totalBytes
          || committed.number("entryCount") != totalEntries
          || committed.number("regionCount") != regionIndex + 1) {
        throw new ShuffleException(
            ErrorCode.COUNT_MISMATCH,
            "the worker stored other totals than were sent for " + descriptor);
      }
    }
  }

  /** From any thread: ends every wait, and the write unless it is committed. Idempotent. */
  void cancel() {
    WorkerChannel open;
    synchronized (waits) {
      if (!waits.cancel()) {
        return;
      }
      open = committed == null ? channel : null;
    }
    dial.cancel();
    if (open != null) {
      open.close();
    }
  }

  // --- opening ---

  private void openWithRetries(Message regionStart) throws IOException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(settings.openMs);
    long pauseMs = BACK_OFF_FIRST_MS;
    while (true) {
      try {
        open(regionStart, deadline);
        return;
      } catch (ShuffleException error) {
        boolean isWorthRetry =
            error.is(
                ErrorCode.WORKER_UNREACHABLE,
                ErrorCode.BUSY,
                ErrorCode.NO_MANAGER,
                ErrorCode.WRITE_INTERRUPTED);
        if (!isWorthRetry || System.nanoTime() - deadline > 0) {
          throw error;
        }
        retries.inc();
        synchronized (waits) {
          channel = null;
          answers = null;
          // Of a channel that was lost just after it was opened.
          credit = 0;
          waits.forgetFailure();
        }
      }
      waits.await(
          () -> false, pauseMs / 2 + ThreadLocalRandom.current().nextLong(pauseMs / 2 + 1));
      pauseMs = Math.min(BACK_OFF_MAX_MS, pauseMs * 2);
    }
  }

  private void open(Message regionStart, long deadlineNanos)
      throws IOException, InterruptedException {
    WorkerConnection connection = dial.connect(deadlineNanos);
    if (descriptor.bufferSizeBytes() > connection.bufferSizeBytes()) {
      throw new ShuffleException(
          ErrorCode.LIMIT_EXCEEDED,
          "taskmanager.memory.segment-size is "
              + descriptor.bufferSizeBytes()
              + " bytes, but the shuffle workers' buffer-size is "
              + connection.bufferSizeBytes());
    }
    Message openWrite =
        new Message(
            MessageType.OPEN_WRITE,
            descriptor.key(),
            descriptor.allocation(),
            "map",
            (long) descriptor.subpartitionCount(),
            0L,
            (long) descriptor.subpartitionCount() - 1,
            (long) descriptor.bufferSizeBytes(),
            descriptor.codec(),
            null);
    synchronized (waits) {
      waits.throwIfFailed();
      isOpened = false;
      answers = new Answers();
      channel = connection.channel(answers);
    }
    channel.open(openWrite);
    if (regionStart != null) {
      channel.send(regionStart);
    }
    synchronized (waits) {
      long leftMs = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
      awaitUntil(
          () -> isOpened, Math.max(1_000, leftMs), "the worker did not answer the opening of a write");
    }
  }

  // --- waiting ---

  /** With the lock held. What is not met in time fails the whole write. */
  private void awaitUntil(TaskWaits.Condition condition, long timeoutMs, String what)
      throws IOException, InterruptedException {
    if (!waits.await(condition, timeoutMs)) {
      ShuffleException error =
          new ShuffleException(
              ErrorCode.WRITE_INTERRUPTED, what + ": " + descriptor + ", " + timeoutMs + " ms");
      waits.fail(error);
      channel.close();
      throw error;
    }
  }

  /** What the worker says on one channel, in the thread of the connection. */
  private final class Answers implements ChannelHandler {

    @Override
    public ByteBuf dataBody(int bodyLength) {
      return null;
    }

    @Override
    public void onData(ByteBuf body) {
      body.release();
    }

    @Override
    public void onMessage(Message message) {
      synchronized (waits) {
        if (answers != this) {
          return;
        }
        switch (message.type()) {
          case WRITE_OPENED:
            isOpened = true;
            break;
          case ADD_CREDIT:
            if (message.integer("regionIndex") == regionIndex) {
              credit += message.number("credit");
            }
            break;
          case WRITE_COMMITTED:
            committed = message;
            break;
          case ERROR:
            channel.forget();
            waits.fail(
                new ShuffleException(
                    ErrorCode.ofWire(message.integer("code")),
                    message.text("text") + " (" + descriptor + ")"));
            break;
          default:
            waits.fail(
                new ShuffleException(
                    ErrorCode.PROTOCOL, message.type().wireName() + " came on a write"));
            break;
        }
        waits.notifyAll();
      }
    }

    @Override
    public void onClosed(ShuffleException error) {
      synchronized (waits) {
        if (committed == null && answers == this) {
          boolean isBeforeOpening = !isOpened;
          waits.fail(
              isBeforeOpening
                  ? error
                  : new ShuffleException(
                      ErrorCode.WRITE_INTERRUPTED,
                      "the connection was lost while " + descriptor + " was written",
                      error));
        }
        waits.notifyAll();
      }
    }
  }
}
