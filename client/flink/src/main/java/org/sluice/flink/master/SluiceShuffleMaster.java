package org.sluice.flink.master;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.shuffle.JobShuffleContext;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ProducerDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.TaskInputsOutputsDescriptor;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The JobManager's side of the shuffle, for any number of jobs. Blocking results are placed on
 * shuffle workers, all others are Flink's own. Its list of partitions is the truth about what should
 * exist; a manager that restarts is told it again. Nothing here blocks Flink's threads: all state
 * belongs to one thread. No trouble with the manager ever ends the JobManager; requests fail, and
 * are made again.
 */
public final class SluiceShuffleMaster implements ShuffleMaster<ShuffleDescriptor> {
  private static final Logger LOG = LoggerFactory.getLogger(SluiceShuffleMaster.class);
  /** The data of jobs that have just ended should not have to wait for the manager's job-timeout. */
  private static final long CLOSE_WAIT_MS = 3_000;

  private final ManagerClient manager;
  private final ShuffleMaster<NettyShuffleDescriptor> netty;
  private final MasterSettings settings;
  private final MasterThread thread = new MasterThread();

  // All of the following belongs to the thread.
  private final Map<JobID, MasterJob> jobs = new LinkedHashMap<>();
  private final JobRegistrations registrations;
  private final PartitionReleases releases;
  private final PartitionRequests requests;
  private final Heartbeats heartbeats;
  /** What the manager is being told of jobs that have ended, by their ids. */
  private final Map<String, CompletableFuture<?>> farewells = new LinkedHashMap<>();

  private volatile boolean isClosed;

  public SluiceShuffleMaster(
      ManagerClient manager,
      ShuffleMaster<NettyShuffleDescriptor> netty,
      MasterSettings settings) {
    this.manager = manager;
    this.netty = netty;
    this.settings = settings;
    String clientId = "flink-" + UUID.randomUUID();
    Collection<MasterJob> present = jobs.values();
    registrations =
        new JobRegistrations(manager, clientId, settings.isTakeOverAllowed, thread);
    releases = new PartitionReleases(manager, present, thread);
    requests = new PartitionRequests(manager, settings, registrations, releases, thread);
    heartbeats = new Heartbeats(manager, clientId, present, registrations, releases, thread);
  }

  /** Whether results of the type are placed on shuffle workers. */
  public static boolean isRemote(ResultPartitionType type) {
    return type == ResultPartitionType.BLOCKING;
  }

  @Override
  public void start() throws Exception {
    netty.start();
  }

  /** Only at the end of the cluster, so it may wait a little. Idempotent. */
  @Override
  public void close() throws Exception {
    if (isClosed) {
      return;
    }
    isClosed = true;
    CompletableFuture<Void> told = new CompletableFuture<>();
    thread.execute(
        () -> {
          requests.close(closedError());
          CompletableFuture.allOf(farewells.values().toArray(new CompletableFuture<?>[0]))
              .whenComplete((nothing, error) -> told.complete(null));
        });
    try {
      told.get(CLOSE_WAIT_MS, TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException error) {
      LOG.warn("the manager may not have heard of all jobs that ended; they expire there", error);
    } finally {
      thread.shutdown();
      manager.close();
      netty.close();
    }
  }

  private static ShuffleException closedError() {
    return new ShuffleException(ErrorCode.CANCELLED, "the shuffle master is closed");
  }

  // --- jobs ---

  @Override
  public void registerJob(JobShuffleContext context) {
    netty.registerJob(context);
    thread.execute(
        () -> {
          MasterJob present = jobs.get(context.getJobId());
          if (present != null) {
            present.context = context;
            return;
          }
          // The manager hears of a job with its first blocking result: of most streaming jobs never.
          String id = settings.application + "." + context.getJobId();
          MasterJob job = new MasterJob(id, context);
          // Else what is said of its earlier life could end this one.
          job.earlierEnded = farewells.getOrDefault(id, job.earlierEnded);
          jobs.put(context.getJobId(), job);
        });
  }

  /** Called for a job that ended, and also when this JobManager merely lost its leadership. */
  @Override
  public void unregisterJob(JobID jobId) {
    netty.unregisterJob(jobId);
    thread.execute(
        () -> {
          MasterJob job = jobs.remove(jobId);
          if (job != null) {
            job.isEnded = true;
            sayFarewell(job);
          }
        });
  }

  /** The data is released, or kept for a JobManager that takes the job over. */
  private void sayFarewell(MasterJob job) {
    CompletableFuture<Void> told = new CompletableFuture<>();
    farewells.put(job.jobId, told);
    job.earlierEnded
        .thenCompose(nothing -> registrations.settled(job))
        .thenComposeAsync(nothing -> tellEnd(job), thread)
        .whenCompleteAsync(
            (answer, error) -> {
              if (error != null) {
                LOG.warn(
                    "the manager could not be told that job {} has ended: {}",
                    job.jobId,
                    error.getMessage());
              }
              farewells.remove(job.jobId, told);
              told.complete(null);
            },
            thread);
  }

  private CompletableFuture<JsonNode> tellEnd(MasterJob job) {
    if (job.jobEpoch == null) {
      return CompletableFuture.completedFuture(null);
    }
    return settings.isDetaching
        ? releases.sendAll(job).thenCompose(nothing -> ManagerCalls.detach(manager, job))
        : ManagerCalls.delete(manager, job);
  }

  // --- partitions ---

  @Override
  public CompletableFuture<ShuffleDescriptor> registerPartitionWithProducer(
      JobID jobId, PartitionDescriptor partition, ProducerDescriptor producer) {
    if (!isRemote(partition.getPartitionType())) {
      return netty
          .registerPartitionWithProducer(jobId, partition, producer)
          .thenApply(descriptor -> descriptor);
    }
    CompletableFuture<ShuffleDescriptor> result = new CompletableFuture<>();
    thread.execute(
        () -> {
          MasterJob job = jobs.get(jobId);
          if (job == null) {
            result.completeExceptionally(
                new ShuffleException(
                    ErrorCode.JOB_UNKNOWN, "job " + jobId + " is not registered or was lost"));
            return;
          }
          try {
            requests.add(job, partition, producer, result);
          } catch (RuntimeException error) {
            result.completeExceptionally(ShuffleException.of(error, ErrorCode.INVALID_ARGUMENT));
            return;
          }
          if (!job.isUsed) {
            job.isUsed = true;
            warnUnlessItRestarts(jobId);
            heartbeats.begin();
          }
        });
    if (isClosed) {
      result.completeExceptionally(closedError());
    }
    return result;
  }

  /** Flink tells a ShuffleMaster nothing of a job but its id, so what the job sets itself is unknown. */
  private void warnUnlessItRestarts(JobID jobId) {
    if (!settings.hasRestartStrategy) {
      LOG.warn(
          "restart-strategy.type is not set: unless job {} sets one itself, the loss of a shuffle"
              + " worker fails it. Set restart-strategy.type to fixed-delay or"
              + " exponential-delay.",
          jobId);
    }
  }

  @Override
  public void releasePartitionExternally(ShuffleDescriptor descriptor) {
    if (descriptor instanceof NettyShuffleDescriptor) {
      netty.releasePartitionExternally(descriptor);
      return;
    }
    if (!(descriptor instanceof SluiceShuffleDescriptor)) {
      return;
    }
    PartitionKey key = ((SluiceShuffleDescriptor) descriptor).key();
    thread.execute(
        () -> {
          for (MasterJob job : jobs.values()) {
            if (job.jobId.equals(key.jobId())) {
              releases.release(job, List.of(key));
            }
          }
        });
  }

  @Override
  public MemorySize computeShuffleMemorySizeForTask(TaskInputsOutputsDescriptor task) {
    return TaskMemory.of(task, settings, netty);
  }
}
