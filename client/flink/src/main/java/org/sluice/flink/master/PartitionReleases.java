package org.sluice.flink.master;

import java.util.Collection;
import java.util.List;
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
    for (MasterJob job : jobs) {
      if (!job.hasReleases() || job.jobEpoch == null) {
        continue;
      }
      List<PartitionKey> keys = job.takeReleases(BATCH_MAX);
      ManagerCalls.release(manager, job, keys)
          .whenCompleteAsync(
              (answer, error) -> {
                if (error != null
                    && !ShuffleException.of(error, ErrorCode.NO_MANAGER)
                        .is(ErrorCode.JOB_UNKNOWN, ErrorCode.SUPERSEDED)) {
                  job.releaseFailed(keys);
                } else if (job.hasReleases()) {
                  sendNow();
                }
              },
              thread);
    }
  }
}
