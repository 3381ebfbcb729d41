package org.sluice.flink.master;

import java.io.IOException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.NettyShuffleServiceFactory;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.runtime.shuffle.JobShuffleContext;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.PartitionWithMetrics;
import org.apache.flink.runtime.shuffle.ProducerDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.ShuffleMasterContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.wire.ErrorCode;

/** A ShuffleMaster with a fake manager, as a JobManager uses it. */
public final class MasterFixture implements AutoCloseable {
  final FakeManager manager;
  final SluiceShuffleMaster master;
  final IntermediateDataSetID dataSet = new IntermediateDataSetID();
  /** What ended the JobManager, if anything did. */
  final List<Throwable> fatalErrors = new CopyOnWriteArrayList<>();

  MasterFixture(String application, boolean isDetaching, long allocateForMs) throws Exception {
    this(application, isDetaching, allocateForMs, true);
  }

  MasterFixture(
      String application, boolean isDetaching, long allocateForMs, boolean hasRestartStrategy)
      throws Exception {
    this.manager = new FakeManager();
    ShuffleMasterContext context =
        new ShuffleMasterContext() {
          @Override
          public Configuration getConfiguration() {
            return new Configuration();
          }

          @Override
          public void onFatalError(Throwable error) {
            fatalErrors.add(error);
          }
        };
    master =
        new SluiceShuffleMaster(
            manager.client(),
            new NettyShuffleServiceFactory().createShuffleMaster(context),
            new MasterSettings(
                application,
                isDetaching,
                hasRestartStrategy,
                32_768,
                "lz4",
                Duration.ofMillis(allocateForMs),
                MemorySize.ofMebiBytes(2),
                MemorySize.ofMebiBytes(3)));
    master.start();
  }

  /** A job as Flink tells of it; keeps what it was told to give up. */
  public static final class Job implements JobShuffleContext {
    public final JobID id;
    final List<Collection<ResultPartitionID>> stopped = new CopyOnWriteArrayList<>();
    volatile int failures;
    volatile boolean isThrowing;

    public Job() {
      this(new JobID());
    }

    Job(JobID id) {
      this.id = id;
    }

    @Override
    public JobID getJobId() {
      return id;
    }

    @Override
    public CompletableFuture<?> stopTrackingAndReleasePartitions(
        Collection<ResultPartitionID> partitions) {
      stopped.add(partitions);
      if (isThrowing) {
        throw new IllegalStateException("the JobMaster has ended");
      }
      if (failures > 0) {
        failures--;
        return CompletableFuture.failedFuture(new IOException("the JobMaster is busy"));
      }
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<Collection<PartitionWithMetrics>> getPartitionWithMetrics(
        Duration timeout, Set<ResultPartitionID> expected) {
      return CompletableFuture.completedFuture(List.of());
    }

    @Override
    public void notifyPartitionRecoveryStarted() {}
  }

  Job job() {
    Job job = new Job();
    master.registerJob(job);
    return job;
  }

  CompletableFuture<ShuffleDescriptor> ask(Job job, int index) throws Exception {
    return ask(job, index, ResultPartitionType.BLOCKING);
  }

  CompletableFuture<ShuffleDescriptor> ask(Job job, int index, ResultPartitionType type)
      throws Exception {
    return ask(master, job, dataSet, index, type);
  }

  public static CompletableFuture<ShuffleDescriptor> ask(
      ShuffleMaster<ShuffleDescriptor> master,
      Job job,
      IntermediateDataSetID dataSet,
      int index,
      ResultPartitionType type)
      throws Exception {
    return master.registerPartitionWithProducer(
        job.id,
        new PartitionDescriptor(
            dataSet,
            10,
            new IntermediateResultPartitionID(dataSet, index),
            type,
            4,
            0,
            false,
            true,
            false),
        new ProducerDescriptor(
            ResourceID.generate(),
            ExecutionAttemptID.randomId(),
            InetAddress.getLoopbackAddress(),
            1234));
  }

  public static SluiceShuffleDescriptor placed(CompletableFuture<ShuffleDescriptor> asked)
      throws Exception {
    return (SluiceShuffleDescriptor) asked.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
  }

  List<SluiceShuffleDescriptor> place(Job job, int count) throws Exception {
    List<CompletableFuture<ShuffleDescriptor>> asked = new ArrayList<>();
    for (int index = 0; index < count; index++) {
      asked.add(ask(job, index));
    }
    List<SluiceShuffleDescriptor> placed = new ArrayList<>();
    for (CompletableFuture<ShuffleDescriptor> one : asked) {
      placed.add(placed(one));
    }
    return placed;
  }

  public static ShuffleException failure(CompletableFuture<?> asked) throws Exception {
    try {
      throw new AssertionError(
          "it was answered: " + asked.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS));
    } catch (ExecutionException error) {
      return ShuffleException.of(error, ErrorCode.INVALID_ARGUMENT);
    }
  }

  /** How many partitions the calls carry together. */
  static int rows(List<FakeManager.Call> calls, String groups) {
    int rows = 0;
    for (FakeManager.Call call : calls) {
      for (JsonNode group : call.body.path(groups)) {
        rows += group.path("partitionIndices").size();
      }
    }
    return rows;
  }

  @Override
  public void close() throws Exception {
    master.close();
    manager.close();
  }
}
