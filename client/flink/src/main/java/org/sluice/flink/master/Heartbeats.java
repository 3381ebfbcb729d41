package org.sluice.flink.master;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.shuffle.JobShuffleContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.ErrorCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The heartbeat of a ShuffleMaster: one long poll after another for all of its jobs together, by
 * which it hears of losses at once. Belongs to the master's thread.
 */
final class Heartbeats {
  private static final Logger LOG = LoggerFactory.getLogger(Heartbeats.class);
  private static final long PAUSE_MS = 250;
  private static final int STOP_TRACKING_TRIES = 3;

  private final ManagerClient manager;
  private final String clientId;
  /** Those that Flink has registered and not unregistered. */
  private final Collection<MasterJob> jobs;
  private final JobRegistrations registrations;
  private final PartitionReleases releases;
  private final MasterThread thread;
  private boolean isBeating;

  Heartbeats(
      ManagerClient manager,
      String clientId,
      Collection<MasterJob> jobs,
      JobRegistrations registrations,
      PartitionReleases releases,
      MasterThread thread) {
    this.manager = manager;
    this.clientId = clientId;
    this.jobs = jobs;
    this.registrations = registrations;
    this.releases = releases;
    this.thread = thread;
  }

  /** It goes on by itself for as long as there are jobs that use the service. Idempotent. */
  void begin() {
    if (isBeating) {
      return;
    }
    List<MasterJob> used = new ArrayList<>(jobs);
    used.removeIf(job -> !job.isUsed);
    if (used.isEmpty()) {
      return;
    }
    isBeating = true;
    List<CompletableFuture<Void>> registering = new ArrayList<>();
    for (MasterJob job : used) {
      if (!registrations.isKnown(job)) {
        registering.add(register(job));
      }
    }
    CompletableFuture.allOf(registering.toArray(new CompletableFuture<?>[0]))
        .whenCompleteAsync((nothing, error) -> send(error != null), thread);
  }

  private CompletableFuture<Void> register(MasterJob job) {
    return registrations
        .register(job)
        .whenCompleteAsync(
            (nothing, error) -> {
              if (error != null
                  && ShuffleException.of(error, ErrorCode.NO_MANAGER).is(ErrorCode.SUPERSEDED)) {
                giveUp(job);
              }
            },
            thread);
  }

  private void send(boolean isTroubled) {
    releases.sendNow();
    List<MasterJob> beating = new ArrayList<>();
    ObjectNode body = ManagerClient.object();
    body.put("clientId", clientId);
    boolean hasChanges = isTroubled;
    ArrayNode unknown = ManagerClient.array();
    for (MasterJob job : jobs) {
      if (job.jobEpoch == null || job.reportedTo == 0) {
        continue;
      }
      hasChanges |= job.hasChanges();
      beating.add(job);
      job.putUnknownCommands(unknown);
    }
    if (beating.isEmpty()) {
      end(PAUSE_MS);
      return;
    }
    List<ObjectNode> beats = JobBeats.of(beating);
    beats.forEach(body.putArray("jobs")::add);
    if (unknown.size() > 0) {
      body.set("unknownCommands", unknown);
    }
    long waitMs = hasChanges ? 0 : registrations.heartbeatIntervalMs();
    body.put("waitMs", waitMs);
    manager
        .call("POST", "/v1/jobs/heartbeat", body, 0, waitMs)
        .whenCompleteAsync(
            (answer, error) -> {
              if (error != null) {
                LOG.debug("the heartbeat to the shuffle manager failed", error);
                end(PAUSE_MS);
                return;
              }
              boolean isUnderstood = true;
              for (int index = 0; index < beating.size(); index++) {
                isUnderstood &=
                    tryTake(beating.get(index), beats.get(index), answer.path("jobs").path(index));
              }
              end(isTroubled || !isUnderstood ? PAUSE_MS : 0);
            },
            thread);
  }

  private void end(long pauseMs) {
    isBeating = false;
    thread.later(this::begin, pauseMs);
  }

  /** Nothing that is said of one job ends the heartbeat of all. */
  private boolean tryTake(MasterJob job, ObjectNode beat, JsonNode answer) {
    try {
      take(job, beat, answer);
      return true;
    } catch (RuntimeException error) {
      LOG.error("what the shuffle manager says of job {} makes no sense", job.jobId, error);
      return false;
    }
  }

  private void take(MasterJob job, ObjectNode beat, JsonNode answer) {
    if (job.isEnded || !job.jobId.equals(answer.path("jobId").asText())) {
      return;
    }
    switch (answer.path("status").asText()) {
      case "ok":
        job.beatTaken(beat);
        List<ListedPartition> lost = job.take(answer.path("commands"));
        if (!lost.isEmpty()) {
          stopTracking(job, lost);
        }
        break;
      case "superseded":
        giveUp(job);
        break;
      default:
        job.reportedTo = 0;
        break;
    }
  }

  private void giveUp(MasterJob job) {
    LOG.error(
        "another client took job {} over: remote-shuffle.application must be different for"
            + " every Flink cluster",
        job.jobId);
    job.isEnded = true;
    jobs.remove(job);
  }

  /**
   * All that are lost at once, before any task can fail for one of them: then the one failure that
   * follows produces all of them again. Flink restarts nothing by itself here.
   */
  private static void stopTracking(MasterJob job, List<ListedPartition> lost) {
    List<ResultPartitionID> ids = new ArrayList<>();
    lost.forEach(partition -> ids.add(partition.descriptor.getResultPartitionID()));
    LOG.warn(
        "{} partitions of job {} are lost, among them {}; they will be produced again",
        ids.size(),
        job.jobId,
        lost.get(0).descriptor);
    stopTracking(job.context, ids, STOP_TRACKING_TRIES);
  }

  private static void stopTracking(
      JobShuffleContext context, Collection<ResultPartitionID> ids, int tries) {
    told(context, ids)
        .whenComplete(
            (nothing, error) -> {
              if (error != null && tries > 1) {
                stopTracking(context, ids, tries - 1);
              } else if (error != null) {
                LOG.warn("Flink could not be told of lost partitions", error);
              }
            });
  }

  private static CompletableFuture<?> told(
      JobShuffleContext context, Collection<ResultPartitionID> ids) {
    try {
      return context.stopTrackingAndReleasePartitions(ids);
    } catch (RuntimeException error) {
      return CompletableFuture.failedFuture(error);
    }
  }
}
