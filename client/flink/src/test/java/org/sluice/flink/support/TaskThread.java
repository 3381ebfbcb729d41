package org.sluice.flink.support;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Something that runs in a thread of its own, as a task does. */
public final class TaskThread<T> {
  private final CompletableFuture<T> result = new CompletableFuture<>();
  private final Thread thread;

  public TaskThread(Callable<T> work) {
    thread =
        new Thread(
            () -> {
              try {
                result.complete(work.call());
              } catch (Throwable error) {
                result.completeExceptionally(error);
              }
            },
            "test-task");
    thread.setDaemon(true);
    thread.start();
  }

  /** Returns when the thread waits for something. */
  public void awaitBlocked() throws Exception {
    Await.until(
        "the task waits",
        () -> {
          Thread.State state = thread.getState();
          return result.isDone()
              || state == Thread.State.WAITING
              || state == Thread.State.TIMED_WAITING;
        });
    if (result.isDone()) {
      throw new AssertionError("the task did not wait: " + result);
    }
  }

  public void interrupt() {
    thread.interrupt();
  }

  public T get() throws Exception {
    return result.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
  }

  /** What it failed with. */
  public Throwable failure() throws Exception {
    try {
      throw new AssertionError("it did not fail but answered " + get());
    } catch (ExecutionException error) {
      return error.getCause();
    }
  }
}
