package org.sluice.flink.read;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.sluice.flink.transport.WorkerAddress;

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
  private final Failing unreachable = new Failing();
  private final Failing busy = new Failing();
  /** Since something of it came. */
  private int pauses;

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
    pauses = 0;
    unreachable.end();
    busy.end();
  }

  /** It can't be reached; answers for how long. Whether it is busy still is not known. */
  long failUnreachable() {
    return unreachable.forMs();
  }

  /** It answers, and so can be reached, but it is busy or something is not ready; for how long. */
  long failBusy() {
    unreachable.end();
    return busy.forMs();
  }

  /** How long to wait before the next try, however many of its partitions want one. */
  long nextPauseMs() {
    long full = Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << Math.min(pauses++, 10));
    return full / 2 + ThreadLocalRandom.current().nextLong(full / 2 + 1);
  }

  /** Since when something has failed. */
  private static final class Failing {
    private boolean hasBegun;
    private long sinceNanos;

    void end() {
      hasBegun = false;
    }

    /** Begins it unless it has begun. */
    long forMs() {
      if (!hasBegun) {
        hasBegun = true;
        sinceNanos = System.nanoTime();
      }
      return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sinceNanos);
    }
  }
}
