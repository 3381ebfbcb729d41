package org.sluice.flink.master;

import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread that all state of a ShuffleMaster belongs to. What fails in it is logged and ends
 * nothing; what comes after its end is dropped.
 */
final class MasterThread implements Executor {
  private static final Logger LOG = LoggerFactory.getLogger(MasterThread.class);

  private final ScheduledThreadPoolExecutor thread;

  MasterThread() {
    thread =
        new ScheduledThreadPoolExecutor(1, new ExecutorThreadFactory("sluice-shuffle-master"));
    thread.setRemoveOnCancelPolicy(true);
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  @Override
  public void execute(Runnable action) {
    later(action, 0);
  }

  /** What it returns calls it off, and lets go of all that the action holds. */
  Runnable later(Runnable action, long delayMs) {
    try {
      Future<?> due = thread.schedule(() -> run(action), delayMs, TimeUnit.MILLISECONDS);
      return () -> due.cancel(false);
    } catch (RejectedExecutionException error) {
      LOG.debug("the shuffle master is closed", error);
      return () -> {};
    }
  }

  private static void run(Runnable action) {
    try {
      action.run();
    } catch (RuntimeException error) {
      LOG.error("work of the shuffle master failed", error);
    }
  }

  void shutdown() {
    thread.shutdownNow();
  }
}
