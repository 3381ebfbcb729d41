package org.sluice.flink.read;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.transport.WorkerConnection;

/**
 * Everything a gate reads from one worker, through one channel at a time. When the channel is lost
 * the gate lets it go on where it stood. Belongs to the task thread.
 */
final class WorkerReader {
  private static final long BACK_OFF_FIRST_MS = 100;
  private static final long BACK_OFF_MAX_MS = 5_000;

  final WorkerAddress worker;
  /** To be listed on the next channel. */
  private final List<InputPartition> waiting = new ArrayList<>();
  WorkerConnection connection;
  private long failingSinceNanos;
  private int failures;

  WorkerReader(WorkerAddress worker) {
    this.worker = worker;
  }

  void add(InputPartition partition) {
    waiting.add(partition);
  }

  boolean hasWaiting() {
    return !waiting.isEmpty();
  }

  InputPartition anyWaiting() {
    return waiting.get(0);
  }

  List<InputPartition> takeWaiting() {
    List<InputPartition> taken = new ArrayList<>(waiting);
    waiting.clear();
    return taken;
  }

  /** Something of it came. */
  void succeed() {
    failures = 0;
  }

  /** Another failure; answers how long it has been failing. */
  long fail() {
    if (failures == 0) {
      failingSinceNanos = System.nanoTime();
    }
    failures++;
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - failingSinceNanos);
  }

  /** How long to wait before the next try. */
  long pauseMs() {
    long full = Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << Math.min(failures - 1, 10));
    return full / 2 + ThreadLocalRandom.current().nextLong(full / 2 + 1);
  }
}
