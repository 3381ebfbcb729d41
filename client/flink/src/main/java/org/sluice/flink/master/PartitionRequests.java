package org.sluice.flink.master;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ProducerDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Places partitions: what Flink asks for within a moment goes to the manager in one call for each
 * data set. Every request is answered before Flink's own timeout, with a place or with the reason why
 * there is none. Belongs to the master's thread.
 */
final class PartitionRequests {
  private static final Logger LOG = LoggerFactory.getLogger(PartitionRequests.class);
  private static final long PAUSE_MS = 250;
  /** Requests that come within it go in one call. */
  private static final long GATHER_MS = 5;
  private static final int BATCH_MAX = 4_000;
  /** Addresses remembered: those of a large cluster, also after some restarts. */
  private static final int WORKERS_MAX = 16_384;

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
    Runnable callOffDeadline = () -> {};
    /** Why it was not placed so far. */
    ShuffleException trouble;

    Batch(MasterJob job, ObjectNode facts, int subpartitionCount) {
      this.job = job;
      this.facts = facts;
      this.subpartitionCount = subpartitionCount;
    }

    List<PartitionKey> keys() {
      List<PartitionKey> keys = new ArrayList<>();
      requests.forEach(request -> keys.add(request.key));
      return keys;
    }

    List<String> hosts() {
      List<String> hosts = new ArrayList<>();
      requests.forEach(request -> hosts.add(request.host));
      return hosts;
    }
  }

  private final ManagerClient manager;
  private final MasterSettings settings;
  private final JobRegistrations registrations;
  private final PartitionReleases releases;
  private final MasterThread thread;
  private final Map<String, Batch> gathering = new LinkedHashMap<>();
  /** Sent, and not answered to Flink. */
  private final Set<Batch> open = new LinkedHashSet<>();
  /** One object for each address: descriptors that are serialised together share it. */
  private final Map<WorkerAddress, WorkerAddress> workers = new HashMap<>();
  private boolean isGatherScheduled;

  PartitionRequests(
      ManagerClient manager,
      MasterSettings settings,
      JobRegistrations registrations,
      PartitionReleases releases,
      MasterThread thread) {
    this.manager = manager;
    this.settings = settings;
    this.registrations = registrations;
    this.releases = releases;
    this.thread = thread;
  }

  void add(
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
      thread.later(
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
    open.add(batch);
    batch.callOffDeadline = thread.later(() -> expire(batch), settings.allocateForMs);
    attempt(batch);
  }

  private void attempt(Batch batch) {
    if (!open.contains(batch)) {
      return;
    }
    MasterJob job = batch.job;
    if (job.isEnded) {
      fail(batch, new ShuffleException(ErrorCode.CANCELLED, "job " + job.jobId + " has ended"));
      return;
    }
    CompletableFuture<Void> registered =
        job.jobEpoch == null || job.reportedTo == 0
            ? registrations.register(job)
            : CompletableFuture.completedFuture(null);
    registered
        .thenComposeAsync(nothing -> allocate(batch), thread)
        .whenCompleteAsync(
            (placed, error) -> {
              if (error == null) {
                accept(batch, placed);
              } else {
                retryOrFail(batch, ShuffleException.of(error, ErrorCode.NO_MANAGER));
              }
            },
            thread);
  }

  private CompletableFuture<List<ManagerCalls.Placed>> allocate(Batch batch) {
    if (!open.contains(batch) || batch.job.isEnded) {
      return CompletableFuture.failedFuture(
          new ShuffleException(ErrorCode.CANCELLED, "nobody waits for the place any more"));
    }
    return ManagerCalls.allocate(
        manager, batch.job, batch.facts, batch.keys(), batch.hosts());
  }

  private void accept(Batch batch, List<ManagerCalls.Placed> placed) {
    if (!open.remove(batch)) {
      // Flink has been told that there is no place, and forgets the key.
      releases.release(batch.job, batch.keys());
      return;
    }
    batch.callOffDeadline.run();
    if (workers.size() > WORKERS_MAX) {
      workers.clear();
    }
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

  private void retryOrFail(Batch batch, ShuffleException error) {
    boolean isRetried =
        error.is(
            ErrorCode.JOB_UNKNOWN,
            ErrorCode.NO_WORKER,
            ErrorCode.NO_MANAGER,
            ErrorCode.BUSY,
            ErrorCode.RESYNC);
    boolean isLate =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PAUSE_MS) - batch.deadlineNanos > 0;
    batch.trouble = error;
    if (isRetried && !isLate && !batch.job.isEnded) {
      if (error.is(ErrorCode.JOB_UNKNOWN)) {
        batch.job.reportedTo = 0;
      }
      thread.later(() -> attempt(batch), PAUSE_MS);
    } else {
      fail(batch, error);
    }
  }

  /** Flink waits no longer, whatever call is still under way. */
  private void expire(Batch batch) {
    fail(
        batch,
        batch.trouble == null
            ? new ShuffleException(
                ErrorCode.NO_MANAGER,
                "the shuffle manager did not answer within " + settings.allocateForMs + " ms")
            : batch.trouble);
  }

  private void fail(Batch batch, ShuffleException error) {
    if (!open.remove(batch)) {
      return;
    }
    batch.callOffDeadline.run();
    List<PartitionKey> keys = batch.keys();
    // The manager may have placed what it could not tell.
    keys.forEach(batch.job::endAllocating);
    releases.release(batch.job, keys);
    LOG.warn(
        "{} partitions of job {} could not be placed: {}",
        keys.size(),
        batch.job.jobId,
        error.getMessage());
    batch.requests.forEach(request -> request.result.completeExceptionally(error));
  }

  /** Answers everything that is open. */
  void close(ShuffleException reason) {
    open.addAll(gathering.values());
    gathering.clear();
    new ArrayList<>(open).forEach(batch -> fail(batch, reason));
  }
}
