package org.sluice.flink.master;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.JobShuffleContext;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ProducerDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.TaskInputsOutputsDescriptor;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.WorkerAddress;
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
  private static final long PAUSE_MS = 250;
  /** Requests that come within it go in one call. */
  private static final long GATHER_MS = 5;
  private static final int BATCH_MAX = 4_000;

  /** What of Flink's configuration and the plugin's options the master needs. */
  public static final class Settings {
    final String application;
    final boolean isTakeOverAllowed;
    final boolean isDetaching;
    final boolean hasRestartStrategy;
    final int bufferSizeBytes;
    final String codec;
    final long allocateForMs;
    final MemorySize memoryPerPartition;
    final MemorySize memoryPerGate;

    public Settings(
        String application,
        boolean isDetaching,
        boolean hasRestartStrategy,
        int bufferSizeBytes,
        String codec,
        Duration allocateFor,
        MemorySize memoryPerPartition,
        MemorySize memoryPerGate) {
      this.isTakeOverAllowed = application != null;
      this.application =
          application == null
              ? "flink-" + UUID.randomUUID().toString().replace("-", "").substring(0, 16)
              : application;
      this.isDetaching = isDetaching;
      this.hasRestartStrategy = hasRestartStrategy;
      this.bufferSizeBytes = bufferSizeBytes;
      this.codec = codec;
      this.allocateForMs = allocateFor.toMillis();
      this.memoryPerPartition = memoryPerPartition;
      this.memoryPerGate = memoryPerGate;
    }
  }

  /** One partition that is asked for. */
  private static final class Request {
    final PartitionKey key;
    final ResultPartitionID resultPartitionId;
    final String host;
    final CompletableFuture<ShuffleDescriptor> result;

    Request(
        PartitionKey key,
        ResultPartitionID resultPartitionId,
        String host,
        CompletableFuture<ShuffleDescriptor> result) {
      this.key = key;
      this.resultPartitionId = resultPartitionId;
      this.host = host;
      this.result = result;
    }
  }

  /** Requests of one data set that go in one call. */
  private static final class Batch {
    final MasterJob job;
    final ObjectNode facts;
    final int subpartitionCount;
    final List<Request> requests = new ArrayList<>();
    long deadlineNanos;

    Batch(MasterJob job, ObjectNode facts, int subpartitionCount) {
      this.job = job;
      this.facts = facts;
      this.subpartitionCount = subpartitionCount;
    }
  }

  private final ManagerClient manager;
  private final ShuffleMaster<NettyShuffleDescriptor> netty;
  private final Settings settings;
  private final String clientId = "flink-" + UUID.randomUUID();
  private final ScheduledThreadPoolExecutor thread;

  // All of the following belongs to the thread.
  private final Map<JobID, MasterJob> jobs = new LinkedHashMap<>();
  private final Map<MasterJob, CompletableFuture<Void>> registrations = new HashMap<>();
  private final Map<String, Batch> gathering = new LinkedHashMap<>();
  /** One object for each address. */
  private final Map<WorkerAddress, WorkerAddress> workers = new HashMap<>();
  private boolean isGatherScheduled;
  private boolean isReleaseScheduled;
  private boolean isBeating;
  private long heartbeatIntervalMs = 5_000;
  private volatile boolean isClosed;

  public SluiceShuffleMaster(
      ManagerClient manager, ShuffleMaster<NettyShuffleDescriptor> netty, Settings settings) {
    this.manager = manager;
    this.netty = netty;
    this.settings = settings;
    this.thread =
        new ScheduledThreadPoolExecutor(1, new ExecutorThreadFactory("sluice-shuffle-master"));
    thread.setRemoveOnCancelPolicy(true);
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** Whether results of the type are placed on shuffle workers. */
  public static boolean isRemote(ResultPartitionType type) {
    return type == ResultPartitionType.BLOCKING;
  }

  @Override
  public void start() throws Exception {
    netty.start();
  }

  @Override
  public void close() throws Exception {
    isClosed = true;
    thread.shutdown();
    manager.close();
    netty.close();
  }

  private void execute(Runnable action) {
    try {
      thread.execute(
          () -> {
            try {
              action.run();
            } catch (RuntimeException error) {
              LOG.error("work of the shuffle master failed", error);
            }
          });
    } catch (RejectedExecutionException error) {
      LOG.debug("the shuffle master is closed", error);
    }
  }

  private void later(Runnable action, long delayMs) {
    try {
      thread.schedule(() -> execute(action), delayMs, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException error) {
      LOG.debug("the shuffle master is closed", error);
    }
  }

  // --- jobs ---

  @Override
  public void registerJob(JobShuffleContext context) {
    netty.registerJob(context);
    if (!settings.hasRestartStrategy) {
      LOG.warn(
          "restart-strategy.type is not set: unless job {} sets one itself, the loss of a shuffle"
              + " worker fails it. Set restart-strategy.type to fixed-delay or"
              + " exponential-delay.",
          context.getJobId());
    }
    execute(
        () -> {
          MasterJob present = jobs.get(context.getJobId());
          if (present != null) {
            present.context = context;
            return;
          }
          // The manager hears of a job with its first blocking result: of most streaming jobs never.
          jobs.put(context.getJobId(), new MasterJob(idOf(context.getJobId()), context));
        });
  }

  private String idOf(JobID jobId) {
    return settings.application + "." + jobId;
  }

  /** Called for a job that ended, and also when this JobManager merely lost its leadership. */
  @Override
  public void unregisterJob(JobID jobId) {
    netty.unregisterJob(jobId);
    execute(
        () -> {
          MasterJob job = jobs.remove(jobId);
          if (job == null) {
            return;
          }
          job.isEnded = true;
          if (job.jobEpoch == null) {
            return;
          }
          CompletableFuture<JsonNode> told =
              settings.isDetaching
                  ? ManagerCalls.detach(manager, job)
                  : ManagerCalls.delete(manager, job);
          told.whenComplete(
              (answer, error) -> {
                if (error != null) {
                  LOG.warn(
                      "the manager could not be told that job {} has ended: {}",
                      job.jobId,
                      error.getMessage());
                }
              });
        });
  }

  /** Registers the job and sends its list; one at a time for a job. In the thread. */
  private CompletableFuture<Void> register(MasterJob job) {
    CompletableFuture<Void> running = registrations.get(job);
    if (running != null) {
      return running;
    }
    CompletableFuture<Void> registration =
        ManagerCalls.register(manager, job, clientId, settings.isTakeOverAllowed)
            .thenComposeAsync(
                answer -> {
                  job.jobEpoch = answer.path("jobEpoch").asLong();
                  heartbeatIntervalMs = answer.path("heartbeatIntervalMs").asLong(5_000);
                  long epoch = manager.managerEpoch();
                  return ManagerCalls.report(manager, job)
                      .thenRunAsync(() -> job.reportedTo = epoch, this::execute);
                },
                this::execute);
    CompletableFuture<Void> done = new CompletableFuture<>();
    registrations.put(job, done);
    registration.whenCompleteAsync(
        (nothing, error) -> {
          registrations.remove(job);
          if (error == null) {
            done.complete(null);
          } else {
            done.completeExceptionally(ShuffleException.of(error, ErrorCode.NO_MANAGER));
          }
        },
        this::execute);
    return done;
  }

  // --- heartbeat: one loop for all jobs ---

  private void beat() {
    if (isBeating || isClosed) {
      return;
    }
    List<MasterJob> used = new ArrayList<>(jobs.values());
    used.removeIf(job -> !job.isUsed);
    if (used.isEmpty()) {
      return;
    }
    isBeating = true;
    List<CompletableFuture<Void>> registering = new ArrayList<>();
    for (MasterJob job : used) {
      if (job.jobEpoch == null || job.reportedTo != manager.managerEpoch()) {
        registering.add(register(job));
      }
    }
    CompletableFuture.allOf(registering.toArray(new CompletableFuture<?>[0]))
        .whenCompleteAsync(
            (nothing, error) -> {
              if (error != null) {
                LOG.debug("a job could not be registered", error);
              }
              sendBeat(error != null);
            },
            this::execute);
  }

  private void sendBeat(boolean isTroubled) {
    releaseNow();
    List<MasterJob> beating = new ArrayList<>();
    List<ObjectNode> beats = new ArrayList<>();
    ObjectNode body = ManagerClient.object();
    body.put("clientId", clientId);
    boolean hasChanges = isTroubled;
    ArrayNode list = body.putArray("jobs");
    ArrayNode unknown = ManagerClient.array();
    for (MasterJob job : jobs.values()) {
      if (job.jobEpoch == null || job.reportedTo == 0) {
        continue;
      }
      hasChanges |= job.hasChanges();
      ObjectNode one = job.beat();
      beating.add(job);
      beats.add(one);
      list.add(one);
      job.putUnknownCommands(unknown);
    }
    if (beating.isEmpty()) {
      endBeat(PAUSE_MS);
      return;
    }
    if (unknown.size() > 0) {
      body.set("unknownCommands", unknown);
    }
    long waitMs = hasChanges ? 0 : heartbeatIntervalMs;
    body.put("waitMs", waitMs);
    manager
        .call("POST", "/v1/jobs/heartbeat", body, 0, waitMs)
        .whenCompleteAsync(
            (answer, error) -> {
              if (error != null) {
                LOG.debug("the heartbeat to the shuffle manager failed", error);
                endBeat(PAUSE_MS);
                return;
              }
              for (int index = 0; index < beating.size(); index++) {
                takeAnswer(
                    beating.get(index), beats.get(index), answer.path("jobs").path(index));
              }
              endBeat(isTroubled ? PAUSE_MS : 0);
            },
            this::execute);
  }

  private void endBeat(long pauseMs) {
    isBeating = false;
    if (pauseMs == 0) {
      execute(this::beat);
    } else {
      later(this::beat, pauseMs);
    }
  }

  private void takeAnswer(MasterJob job, ObjectNode beat, JsonNode answer) {
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
        LOG.error(
            "another client took job {} over: remote-shuffle.application must be different for"
                + " every Flink cluster",
            job.jobId);
        job.isEnded = true;
        jobs.values().remove(job);
        break;
      default:
        job.reportedTo = 0;
        break;
    }
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
    stopTracking(job.context, ids, 3);
  }

  private static void stopTracking(
      JobShuffleContext context, Collection<ResultPartitionID> ids, int tries) {
    context
        .stopTrackingAndReleasePartitions(ids)
        .whenComplete(
            (nothing, error) -> {
              if (error != null && tries > 1) {
                stopTracking(context, ids, tries - 1);
              } else if (error != null) {
                LOG.warn("Flink could not be told of lost partitions", error);
              }
            });
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
    execute(
        () -> {
          MasterJob job = jobs.get(jobId);
          if (job == null) {
            result.completeExceptionally(
                new ShuffleException(
                    ErrorCode.JOB_UNKNOWN, "job " + jobId + " is not registered or was lost"));
            return;
          }
          ask(job, partition, producer, result);
        });
    if (isClosed) {
      result.completeExceptionally(
          new ShuffleException(ErrorCode.CANCELLED, "the shuffle master is closed"));
    }
    return result;
  }

  private void ask(
      MasterJob job,
      PartitionDescriptor partition,
      ProducerDescriptor producer,
      CompletableFuture<ShuffleDescriptor> result) {
    ResultPartitionID id =
        new ResultPartitionID(partition.getPartitionId(), producer.getProducerExecutionId());
    String dataSetId = partition.getResultId().toString();
    PartitionKey key = SluiceShuffleDescriptor.keyOf(job.jobId, dataSetId, id);
    ObjectNode facts = ManagerClient.object();
    facts.put("dataSetId", dataSetId);
    facts.put("totalPartitions", partition.getTotalNumberOfPartitions());
    facts.put("subpartitionCount", partition.getNumberOfSubpartitions());
    facts.put("isBroadcast", partition.isBroadcast());
    job.beginAllocating(key);
    if (!job.isUsed) {
      job.isUsed = true;
      beat();
    }
    Batch batch =
        gathering.computeIfAbsent(
            job.jobId + facts,
            name -> new Batch(job, facts, partition.getNumberOfSubpartitions()));
    batch.requests.add(
        new Request(key, id, producer.getAddress().getHostAddress(), result));
    if (batch.requests.size() >= BATCH_MAX) {
      gathering.values().remove(batch);
      send(batch);
    }
    if (!isGatherScheduled) {
      isGatherScheduled = true;
      later(
          () -> {
            isGatherScheduled = false;
            List<Batch> full = new ArrayList<>(gathering.values());
            gathering.clear();
            full.forEach(this::send);
          },
          GATHER_MS);
    }
  }

  private void send(Batch batch) {
    batch.deadlineNanos =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(settings.allocateForMs);
    attempt(batch);
  }

  private void attempt(Batch batch) {
    MasterJob job = batch.job;
    List<PartitionKey> keys = new ArrayList<>();
    List<String> hosts = new ArrayList<>();
    for (Request request : batch.requests) {
      keys.add(request.key);
      hosts.add(request.host);
    }
    CompletableFuture<Void> registered =
        job.jobEpoch == null || job.reportedTo == 0
            ? register(job)
            : CompletableFuture.completedFuture(null);
    registered
        .thenComposeAsync(
            nothing -> ManagerCalls.allocate(manager, job, batch.facts, keys, hosts),
            this::execute)
        .whenCompleteAsync(
            (placed, error) -> {
              if (error == null) {
                accept(batch, placed);
              } else {
                retryOrFail(batch, ShuffleException.of(error, ErrorCode.NO_MANAGER), keys);
              }
            },
            this::execute);
  }

  private void accept(Batch batch, List<ManagerCalls.Placed> placed) {
    // Consumers get all descriptors of a stage in one piece, in which the same object is once.
    String dataSetId = batch.facts.get("dataSetId").asText();
    for (int index = 0; index < batch.requests.size(); index++) {
      Request request = batch.requests.get(index);
      ManagerCalls.Placed place = placed.get(index);
      SluiceShuffleDescriptor descriptor =
          new SluiceShuffleDescriptor(
              request.resultPartitionId,
              batch.job.jobId,
              dataSetId,
              workers.computeIfAbsent(place.worker, worker -> worker),
              place.allocation,
              batch.subpartitionCount,
              settings.bufferSizeBytes,
              settings.codec);
      batch.job.endAllocating(request.key);
      batch.job.add(request.key, new ListedPartition(descriptor, batch.facts));
      request.result.complete(descriptor);
    }
  }

  private void retryOrFail(Batch batch, ShuffleException error, List<PartitionKey> keys) {
    MasterJob job = batch.job;
    boolean isRetried =
        error.is(
            ErrorCode.JOB_UNKNOWN,
            ErrorCode.NO_WORKER,
            ErrorCode.NO_MANAGER,
            ErrorCode.BUSY,
            ErrorCode.RESYNC);
    boolean isLate =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PAUSE_MS) - batch.deadlineNanos > 0;
    if (isRetried && !isLate && !job.isEnded) {
      if (error.is(ErrorCode.JOB_UNKNOWN)) {
        job.reportedTo = 0;
      }
      later(() -> attempt(batch), PAUSE_MS);
      return;
    }
    // The manager may have placed what it could not tell.
    keys.forEach(job::endAllocating);
    release(job, keys);
    LOG.warn(
        "{} partitions of job {} could not be placed: {}",
        keys.size(),
        job.jobId,
        error.getMessage());
    batch.requests.forEach(request -> request.result.completeExceptionally(error));
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
    execute(
        () -> {
          for (MasterJob job : jobs.values()) {
            if (job.jobId.equals(key.jobId())) {
              release(job, List.of(key));
            }
          }
        });
  }

  private void release(MasterJob job, List<PartitionKey> keys) {
    job.release(keys);
    if (!isReleaseScheduled) {
      isReleaseScheduled = true;
      later(
          () -> {
            isReleaseScheduled = false;
            releaseNow();
          },
          GATHER_MS);
    }
  }

  /** What fails stays to be released with a later heartbeat. */
  private void releaseNow() {
    for (MasterJob job : jobs.values()) {
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
                  releaseNow();
                }
              },
              this::execute);
    }
  }

  /** For fine-grained resources: what a task's results and gates take at most. */
  @Override
  public MemorySize computeShuffleMemorySizeForTask(TaskInputsOutputsDescriptor task) {
    MemorySize own = MemorySize.ZERO;
    Map<IntermediateDataSetID, ResultPartitionType> inputTypes = new HashMap<>();
    Map<IntermediateDataSetID, Integer> inputs = new HashMap<>();
    int nettyGates = 0;
    for (Map.Entry<IntermediateDataSetID, ResultPartitionType> input :
        task.getInputPartitionTypes().entrySet()) {
      if (isRemote(input.getValue())) {
        own = own.add(settings.memoryPerGate);
      } else {
        inputTypes.put(input.getKey(), input.getValue());
        inputs.put(input.getKey(), task.getInputChannelNums().get(input.getKey()));
        nettyGates++;
      }
    }
    Map<IntermediateDataSetID, ResultPartitionType> outputTypes = new HashMap<>();
    Map<IntermediateDataSetID, Integer> outputs = new HashMap<>();
    for (Map.Entry<IntermediateDataSetID, ResultPartitionType> output :
        task.getPartitionTypes().entrySet()) {
      if (isRemote(output.getValue())) {
        own = own.add(settings.memoryPerPartition);
      } else {
        outputTypes.put(output.getKey(), output.getValue());
        outputs.put(output.getKey(), task.getSubpartitionNums().get(output.getKey()));
      }
    }
    if (inputTypes.isEmpty() && outputTypes.isEmpty()) {
      return own;
    }
    Map<IntermediateDataSetID, Integer> reuse = new HashMap<>(task.getPartitionReuseCount());
    reuse.keySet().retainAll(inputs.keySet());
    return own.add(
        netty.computeShuffleMemorySizeForTask(
            TaskInputsOutputsDescriptor.from(
                nettyGates, inputs, reuse, outputs, inputTypes, outputTypes)));
  }
}
