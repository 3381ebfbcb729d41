package org.sluice.flink.write;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.execution.CancelTaskException;
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
  /** How long what is waited for may take. */
  static final class Deadlines {
    final long openMs;
    final long regionMs;
    final long commitMs;

    Deadlines(long openMs, long regionMs, long commitMs) {
      this.openMs = openMs;
      this.regionMs = regionMs;
      this.commitMs = commitMs;
    }
  }

  private static final long BACK_OFF_FIRST_MS = 50;
  private static final long BACK_OFF_MAX_MS = 2_000;

  private final SluiceShuffleDescriptor descriptor;
  private final Locator locator;
  private final Deadlines deadlines;
  private final Counter waitForCreditMs;
  private final Counter retries;

  private final Object lock = new Object();
  private WorkerChannel channel;
  private Answers answers;
  private boolean isOpened;
  private boolean isCancelled;
  private ShuffleException failure;
  private int regionIndex = -1;
  private long credit;
  private Message committed;
  /** What the task waits on outside the lock. */
  private CompletableFuture<WorkerConnection> connecting;

  private long regionEntries;
  private long regionBytes;
  private long totalEntries;
  private long totalBytes;

  WriteChannel(
      SluiceShuffleDescriptor descriptor,
      Locator locator,
      Deadlines deadlines,
      Counter waitForCreditMs,
      Counter retries) {
    this.descriptor = descriptor;
    this.locator = locator;
    this.deadlines = deadlines;
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
    synchronized (lock) {
      throwIfFailed();
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
    synchronized (lock) {
      throwIfFailed();
      if (credit == 0) {
        long start = System.nanoTime();
        try {
          awaitUntil(
              () -> credit > 0,
              deadlines.regionMs,
              "the worker granted no credit for a region within its deadline");
        } finally {
          waitForCreditMs.inc(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
        }
      }
      credit--;
    }
  }

  void finishRegion() {
    synchronized (lock) {
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
    synchronized (lock) {
      awaitUntil(
          () -> committed != null, deadlines.commitMs, "the commit was not answered in time");
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
    CompletableFuture<WorkerConnection> pending;
    synchronized (lock) {
      if (isCancelled) {
        return;
      }
      isCancelled = true;
      open = committed == null ? channel : null;
      pending = connecting;
      lock.notifyAll();
    }
    if (pending != null) {
      pending.cancel(false);
    }
    if (open != null) {
      open.close();
    }
  }

  // --- opening ---

  private void openWithRetries(Message regionStart) throws IOException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(deadlines.openMs);
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
        synchronized (lock) {
          channel = null;
          answers = null;
          failure = null;
        }
      }
      pause(pauseMs / 2 + ThreadLocalRandom.current().nextLong(pauseMs / 2 + 1));
      pauseMs = Math.min(BACK_OFF_MAX_MS, pauseMs * 2);
    }
  }

  private void open(Message regionStart, long deadlineNanos)
      throws IOException, InterruptedException {
    WorkerConnection connection = connect(deadlineNanos);
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
    synchronized (lock) {
      throwIfFailed();
      isOpened = false;
      answers = new Answers();
      channel = connection.open(answers, openWrite);
    }
    if (regionStart != null) {
      channel.send(regionStart);
    }
    synchronized (lock) {
      long leftMs = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
      awaitUntil(
          () -> isOpened, Math.max(1_000, leftMs), "the worker did not answer the opening of a write");
    }
  }

  private WorkerConnection connect(long deadlineNanos) throws IOException, InterruptedException {
    CompletableFuture<WorkerConnection> pending =
        locator.connect(descriptor.worker(), descriptor.key());
    synchronized (lock) {
      throwIfFailed();
      connecting = pending;
    }
    try {
      long leftNanos = Math.max(TimeUnit.SECONDS.toNanos(1), deadlineNanos - System.nanoTime());
      return pending.get(leftNanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException error) {
      throw ShuffleException.of(error, ErrorCode.WORKER_UNREACHABLE);
    } catch (TimeoutException error) {
      throw new ShuffleException(
          ErrorCode.WORKER_UNREACHABLE,
          "no connection to worker " + descriptor.worker() + " in time",
          error);
    } catch (java.util.concurrent.CancellationException error) {
      throw new CancelTaskException("the write was cancelled");
    } finally {
      synchronized (lock) {
        connecting = null;
      }
    }
  }

  private void pause(long pauseMs) throws IOException, InterruptedException {
    synchronized (lock) {
      long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pauseMs);
      while (true) {
        throwIfFailed();
        long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (leftMs <= 0) {
          return;
        }
        lock.wait(leftMs);
      }
    }
  }

  // --- waiting ---

  private interface Condition {
    boolean isMet();
  }

  /** With the lock held. Failing marks the whole write as failed. */
  private void awaitUntil(Condition condition, long timeoutMs, String what)
      throws IOException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    while (true) {
      throwIfFailed();
      if (condition.isMet()) {
        return;
      }
      long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (leftMs <= 0) {
        failure =
            new ShuffleException(
                ErrorCode.WRITE_INTERRUPTED, what + ": " + descriptor + ", " + timeoutMs + " ms");
        channel.close();
        throw failure;
      }
      lock.wait(leftMs);
    }
  }

  private void throwIfFailed() throws ShuffleException {
    if (isCancelled) {
      throw new CancelTaskException("the write was cancelled");
    }
    if (failure != null) {
      throw failure;
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
      synchronized (lock) {
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
            fail(
                new ShuffleException(
                    ErrorCode.ofWire(message.integer("code")),
                    message.text("text") + " (" + descriptor + ")"));
            break;
          default:
            fail(
                new ShuffleException(
                    ErrorCode.PROTOCOL, message.type().wireName() + " came on a write"));
            break;
        }
        lock.notifyAll();
      }
    }

    @Override
    public void onClosed(ShuffleException error) {
      synchronized (lock) {
        if (committed == null && answers == this) {
          boolean isBeforeOpening = !isOpened;
          fail(
              isBeforeOpening
                  ? error
                  : new ShuffleException(
                      ErrorCode.WRITE_INTERRUPTED,
                      "the connection was lost while " + descriptor + " was written",
                      error));
        }
        lock.notifyAll();
      }
    }
  }

  private void fail(ShuffleException error) {
    if (failure == null) {
      failure = error;
    }
  }
}
