package org.sluice.flink.master;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

/**
 * Releases partitions at the manager, many with one call. What fails stays to be released with a
 * later heartbeat. Belongs to the master's thread.
 */
final class PartitionReleases {
  private static final long GATHER_MS = 5;
  private static final int BATCH_MAX = 4_000;

  private final ManagerClient manager;
  private final Collection<MasterJob> jobs;
  private final MasterThread thread;
  private boolean isScheduled;

  PartitionReleases(ManagerClient manager, Collection<MasterJob> jobs, MasterThread thread) {
    this.manager = manager;
    this.jobs = jobs;
    this.thread = thread;
  }

  void release(MasterJob job, Collection<PartitionKey> keys) {
    job.release(keys);
    if (!isScheduled) {
      isScheduled = true;
      thread.later(
          () -> {
            isScheduled = false;
            sendNow();
          },
          GATHER_MS);
    }
  }

  void sendNow() {
    jobs.forEach(this::sendAll);
  }

  /** All of one job; done, however that ended, when nothing is left that the manager hears now. */
  CompletableFuture<Void> sendAll(MasterJob job) {
    if (!job.hasReleases() || job.jobEpoch == null) {
      return CompletableFuture.completedFuture(null);
    }
    List<PartitionKey> keys = job.takeReleases(BATCH_MAX);
    return ManagerCalls.release(manager, job, keys)
        .handleAsync((answer, error) -> error == null || isOver(error), thread)
        .thenCompose(
            isDone -> {
              if (isDone) {
                return sendAll(job);
              }
              job.releaseFailed(keys);
              return CompletableFuture.completedFuture(null);
            });
  }

  /** The manager has nothing of it any more. */
  private static boolean isOver(Throwable error) {
    return ShuffleException.of(error, ErrorCode.NO_MANAGER)
        .is(ErrorCode.JOB_UNKNOWN, ErrorCode.SUPERSEDED);
  }
}
