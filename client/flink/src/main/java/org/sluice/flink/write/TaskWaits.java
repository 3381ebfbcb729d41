package org.sluice.flink.write;

import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.sluice.flink.ShuffleException;

/**
 * The waits of a producer's task thread. Each ends with the first of what is waited for, a failure,
 * {@link #cancel} from any thread, and its time. It is the lock of what is waited for, too.
 */
final class TaskWaits {
  private boolean isCancelled;
  private ShuffleException failure;

  /** What is waited for; looked at with the lock held. */
  interface Condition {
    boolean isMet();
  }

  /** Ends every wait, the present and later ones. The first failure counts. */
  synchronized void fail(ShuffleException error) {
    if (failure == null) {
      failure = error;
    }
    notifyAll();
  }

  /** What failed is tried again. */
  synchronized void forgetFailure() {
    failure = null;
  }

  /** False: it was cancelled already. */
  synchronized boolean cancel() {
    boolean isFirst = !isCancelled;
    isCancelled = true;
    notifyAll();
    return isFirst;
  }

  synchronized boolean isCancelled() {
    return isCancelled;
  }

  synchronized void throwIfFailed() throws ShuffleException {
    if (isCancelled) {
      throw new CancelTaskException("the write was cancelled");
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** False: not within the time. */
  synchronized boolean await(Condition condition, long timeoutMs)
      throws ShuffleException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    while (true) {
      throwIfFailed();
      if (condition.isMet()) {
        return true;
      }
      long leftNanos = deadline - System.nanoTime();
      if (leftNanos <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, Math.max(leftNanos, 1_000_000));
    }
  }
}
