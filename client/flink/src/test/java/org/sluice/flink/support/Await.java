package org.sluice.flink.support;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Waits for conditions; the deadline is for what hangs. */
public final class Await {
  public static final long DEADLINE_MS = 30_000;

  /** What is waited for. */
  public interface Condition {
    boolean isMet() throws Exception;
  }

  private Await() {}

  public static void until(String what, Condition condition) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DEADLINE_MS);
    while (!condition.isMet()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError("not within " + DEADLINE_MS + " ms: " + what);
      }
      LockSupport.parkNanos(200_000);
    }
  }
}
