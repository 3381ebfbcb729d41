package org.sluice.flink.write;

import java.io.IOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.transport.WorkerConnection;
import org.sluice.flink.wire.ErrorCode;

/** A producer's wait for a connection to its worker. */
final class Dial {
  private static final long WAIT_NANOS_MIN = TimeUnit.SECONDS.toNanos(1);

  private final SluiceShuffleDescriptor descriptor;
  private final Locator locator;
  private CompletableFuture<WorkerConnection> pending;
  private boolean isCancelled;

  Dial(SluiceShuffleDescriptor descriptor, Locator locator) {
    this.descriptor = descriptor;
    this.locator = locator;
  }

  WorkerConnection connect(long deadlineNanos) throws IOException, InterruptedException {
    CompletableFuture<WorkerConnection> dialled =
        locator.connect(descriptor.worker(), descriptor.key());
    synchronized (this) {
      if (isCancelled) {
        throw cancelled();
      }
      pending = dialled;
    }
    try {
      long leftNanos = Math.max(WAIT_NANOS_MIN, deadlineNanos - System.nanoTime());
      return dialled.get(leftNanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException error) {
      throw ShuffleException.of(error, ErrorCode.WORKER_UNREACHABLE);
    } catch (TimeoutException error) {
      throw new ShuffleException(
          ErrorCode.WORKER_UNREACHABLE,
          "no connection to worker " + descriptor.worker() + " in time",
          error);
    } catch (CancellationException error) {
      throw cancelled();
    } finally {
      synchronized (this) {
        pending = null;
      }
    }
  }

  private static CancelTaskException cancelled() {
    return new CancelTaskException("the write was cancelled");
  }

  /** From any thread: ends the wait. Idempotent. */
  void cancel() {
    CompletableFuture<WorkerConnection> waitedFor;
    synchronized (this) {
      isCancelled = true;
      waitedFor = pending;
    }
    if (waitedFor != null) {
      waitedFor.cancel(false);
    }
  }
}
