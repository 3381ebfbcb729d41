package org.sluice.flink.master;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.ErrorCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes jobs known to the manager, with their whole lists: at the first blocking result, and again to
 * every manager that does not have them. Belongs to the master's thread.
 */
final class JobRegistrations {
  private static final Logger LOG = LoggerFactory.getLogger(JobRegistrations.class);
  private static final long HEARTBEAT_INTERVAL_MS = 5_000;

  private final ManagerClient manager;
  private final String clientId;
  private final boolean isTakeOverAllowed;
  private final MasterThread thread;
  private final Map<MasterJob, CompletableFuture<Void>> running = new HashMap<>();
  private long heartbeatIntervalMs = HEARTBEAT_INTERVAL_MS;

  JobRegistrations(
      ManagerClient manager, String clientId, boolean isTakeOverAllowed, MasterThread thread) {
    this.manager = manager;
    this.clientId = clientId;
    this.isTakeOverAllowed = isTakeOverAllowed;
    this.thread = thread;
  }

  /** As the manager wants it. */
  long heartbeatIntervalMs() {
    return heartbeatIntervalMs;
  }

  /** Whether the manager that answers has the job's list. */
  boolean isKnown(MasterJob job) {
    return job.jobEpoch != null && job.reportedTo == manager.managerEpoch();
  }

  /** Registers the job and sends its list; one at a time for a job. */
  CompletableFuture<Void> register(MasterJob job) {
    CompletableFuture<Void> present = running.get(job);
    if (present != null) {
      return present;
    }
    CompletableFuture<Void> done = new CompletableFuture<>();
    running.put(job, done);
    job.earlierEnded
        .thenCompose(
            nothing -> ManagerCalls.register(manager, job, clientId, isTakeOverAllowed))
        .thenComposeAsync(
            answer -> {
              job.jobEpoch = answer.path("jobEpoch").asLong();
              heartbeatIntervalMs =
                  answer.path("heartbeatIntervalMs").asLong(HEARTBEAT_INTERVAL_MS);
              long epoch = manager.managerEpoch();
              return ManagerCalls.report(manager, job)
                  .thenRunAsync(() -> job.reportTaken(epoch), thread);
            },
            thread)
        .whenCompleteAsync((nothing, error) -> finish(job, done, error), thread);
    return done;
  }

  private void finish(MasterJob job, CompletableFuture<Void> done, Throwable error) {
    running.remove(job);
    if (error == null) {
      job.trouble = null;
      done.complete(null);
      return;
    }
    ShuffleException failure = ShuffleException.of(error, ErrorCode.NO_MANAGER);
    if (!failure.getMessage().equals(job.trouble)) {
      job.trouble = failure.getMessage();
      LOG.warn("job {} is not known to the shuffle manager: {}", job.jobId, job.trouble);
    }
    done.completeExceptionally(failure);
  }

  /** Done when no registration of the job is under way, however it ended. */
  CompletableFuture<Void> settled(MasterJob job) {
    CompletableFuture<Void> present = running.get(job);
    return present == null
        ? CompletableFuture.completedFuture(null)
        : present.exceptionally(error -> null);
  }
}
