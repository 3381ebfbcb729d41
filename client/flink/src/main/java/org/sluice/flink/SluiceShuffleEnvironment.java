package org.sluice.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.executiongraph.PartitionInfo;
import org.apache.flink.runtime.io.network.NettyShuffleEnvironment;
import org.apache.flink.runtime.io.network.api.writer.ResultPartitionWriter;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.partition.PartitionProducerStateProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleIOOwnerContext;
import org.apache.flink.runtime.shuffle.ShuffleMetrics;
import org.apache.flink.runtime.util.ConfigurationParserUtils;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.master.SluiceShuffleMaster;
import org.sluice.flink.read.InputPartition;
import org.sluice.flink.read.ReadServices;
import org.sluice.flink.read.ReadSettings;
import org.sluice.flink.read.SluiceInputGate;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.write.SluiceResultPartition;
import org.sluice.flink.write.WriteSettings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The TaskManager's side of the shuffle. It owns Flink's own shuffle environment and shares its pool
 * of network buffers: results and gates that are not blocking are made there.
 */
final class SluiceShuffleEnvironment
    implements ShuffleEnvironment<ResultPartitionWriter, IndexedInputGate> {
  private static final Logger LOG = LoggerFactory.getLogger(SluiceShuffleEnvironment.class);

  private final NettyShuffleEnvironment netty;
  private final NetworkBufferPool buffers;
  private final ManagerClient manager;
  private final ConnectionPool connections;
  private final Locator locator;
  private final MemoryPlan memory;
  private final int bufferSize;
  private final WriteSettings writeSettings;
  private final ReadSettings readSettings;

  SluiceShuffleEnvironment(
      ShuffleEnvironmentContext context, NettyShuffleEnvironment netty, ManagerClient manager) {
    Configuration configuration = context.getConfiguration();
    this.netty = netty;
    this.buffers = netty.getNetworkBufferPool();
    this.manager = manager;
    this.bufferSize = ConfigurationParserUtils.getPageSize(configuration);
    this.memory =
        new MemoryPlan(
            configuration,
            buffers.getTotalNumberOfMemorySegments(),
            bufferSize,
            context.getNumberOfSlots());
    int threads = configuration.get(SluiceOptions.NUM_THREADS);
    this.connections =
        new ConnectionPool(
            new ConnectionPool.Settings(
                SluiceOptions.clusterId(configuration),
                SluiceOptions.token(configuration),
                threads > 0 ? threads : Math.max(2, context.getNumberOfSlots() / 4),
                (int) configuration.get(SluiceOptions.CONNECT_TIMEOUT).toMillis(),
                configuration.get(SluiceOptions.HEARTBEAT_INTERVAL).toMillis(),
                "sluice-flink, Flink " + EnvironmentInformation.getVersion()));
    this.locator = new Locator(connections, manager);
    this.writeSettings =
        new WriteSettings(
            configuration.get(SluiceOptions.WRITE_OPEN_TIMEOUT).toMillis(),
            configuration.get(SluiceOptions.WRITE_REGION_TIMEOUT).toMillis(),
            configuration.get(SluiceOptions.WRITE_COMMIT_TIMEOUT).toMillis());
    this.readSettings =
        new ReadSettings(
            configuration.get(SluiceOptions.WORKER_RECOVERY_TIME).plusSeconds(15).toMillis(),
            configuration.get(SluiceOptions.READ_RETRY_TIMEOUT).toMillis(),
            configuration.get(SluiceOptions.READ_IDLE_TIMEOUT).toMillis(),
            configuration.get(SluiceOptions.FAILURE_REPORT_DELAY).toMillis());
    LOG.info("remote shuffle memory: {}", memory);
  }

  /** The data port is that of Flink's own shuffle. */
  @Override
  public int start() throws IOException {
    return netty.start();
  }

  @Override
  public ShuffleIOOwnerContext createShuffleIOOwnerContext(
      String ownerName, ExecutionAttemptID executionAttemptID, MetricGroup parentGroup) {
    return netty.createShuffleIOOwnerContext(ownerName, executionAttemptID, parentGroup);
  }

  @Override
  public List<ResultPartitionWriter> createResultPartitionWriters(
      ShuffleIOOwnerContext owner, List<ResultPartitionDeploymentDescriptor> descriptors) {
    int remote = 0;
    for (ResultPartitionDeploymentDescriptor descriptor : descriptors) {
      remote += SluiceShuffleMaster.isRemote(descriptor.getPartitionType()) ? 1 : 0;
    }
    if (remote == 0) {
      return new ArrayList<>(netty.createResultPartitionWriters(owner, descriptors));
    }
    refuseMixture(owner, "results", remote, descriptors.size());
    MetricGroup metrics = owner.getOutputGroup().addGroup("Sluice");
    List<ResultPartitionWriter> writers = new ArrayList<>();
    for (ResultPartitionDeploymentDescriptor descriptor : descriptors) {
      SluiceShuffleDescriptor shuffle =
          (SluiceShuffleDescriptor) descriptor.getShuffleDescriptor();
      checkBufferSize(shuffle);
      int count = memory.resultBuffers(descriptors.size());
      SluiceResultPartition writer =
          new SluiceResultPartition(
              owner.getOwnerName(),
              writers.size(),
              shuffle,
              descriptor.getPartitionType(),
              descriptor.getNumberOfSubpartitions(),
              descriptor.getMaxParallelism(),
              () -> buffers.createBufferPool(count, count),
              locator,
              writeSettings,
              metrics.addGroup(String.valueOf(writers.size())));
      // A consumer may read a range: watermarks then have to say which subpartition they are of.
      writer.isNumberOfPartitionConsumerUndefined(
          descriptor.isNumberOfPartitionConsumerUndefined());
      writers.add(writer);
    }
    return writers;
  }

  @Override
  public List<IndexedInputGate> createInputGates(
      ShuffleIOOwnerContext owner,
      PartitionProducerStateProvider producerStates,
      List<InputGateDeploymentDescriptor> descriptors) {
    int remote = 0;
    for (InputGateDeploymentDescriptor descriptor : descriptors) {
      remote += SluiceShuffleMaster.isRemote(descriptor.getConsumedPartitionType()) ? 1 : 0;
    }
    if (remote == 0) {
      return new ArrayList<>(netty.createInputGates(owner, producerStates, descriptors));
    }
    refuseMixture(owner, "inputs", remote, descriptors.size());
    MetricGroup metrics = owner.getInputGroup().addGroup("Sluice");
    ReadServices services =
        new ReadServices(connections, locator, manager);
    List<IndexedInputGate> gates = new ArrayList<>();
    for (InputGateDeploymentDescriptor descriptor : descriptors) {
      int most = memory.gateBuffersMax(descriptors.size());
      gates.add(
          new SluiceInputGate(
              owner.getOwnerName(),
              gates.size(),
              descriptor.getConsumedResultId(),
              descriptor.getConsumedPartitionType(),
              inputsOf(descriptor),
              bufferSize,
              () -> buffers.createBufferPool(MemoryPlan.gateBuffersMin(), most),
              services,
              readSettings,
              metrics.addGroup(String.valueOf(gates.size()))));
    }
    return gates;
  }

  private List<InputPartition> inputsOf(InputGateDeploymentDescriptor gate) {
    List<InputPartition> inputs = new ArrayList<>();
    for (ConsumedInput input : ConsumedInputs.of(gate)) {
      SluiceShuffleDescriptor descriptor = (SluiceShuffleDescriptor) input.descriptor;
      checkBufferSize(descriptor);
      inputs.add(
          new InputPartition(
              inputs.size(), descriptor, input.firstSubpartition, input.lastSubpartition));
    }
    return inputs;
  }

  private void checkBufferSize(SluiceShuffleDescriptor descriptor) {
    if (descriptor.bufferSizeBytes() != bufferSize) {
      throw new IllegalStateException(
          "taskmanager.memory.segment-size is "
              + bufferSize
              + " here and "
              + descriptor.bufferSizeBytes()
              + " in the JobManager's configuration; it must be the same");
    }
  }

  /** Both shuffles number a task's results and gates by their place in the list. */
  private static void refuseMixture(
      ShuffleIOOwnerContext owner, String what, int remote, int count) {
    if (remote < count) {
      throw new IllegalStateException(
          "the "
              + what
              + " of "
              + owner.getOwnerName()
              + " are blocking and others, mixed: set execution.batch-shuffle-mode to"
              + " ALL_EXCHANGES_BLOCKING or to ALL_EXCHANGES_PIPELINED");
    }
  }

  @Override
  public void releasePartitionsLocally(Collection<ResultPartitionID> partitionIds) {
    netty.releasePartitionsLocally(partitionIds);
  }

  @Override
  public Collection<ResultPartitionID> getPartitionsOccupyingLocalResources() {
    return netty.getPartitionsOccupyingLocalResources();
  }

  @Override
  public Optional<ShuffleMetrics> getMetricsIfPartitionOccupyingLocalResource(
      ResultPartitionID partitionId) {
    return netty.getMetricsIfPartitionOccupyingLocalResource(partitionId);
  }

  @Override
  public boolean updatePartitionInfo(ExecutionAttemptID consumer, PartitionInfo partition)
      throws IOException, InterruptedException {
    return netty.updatePartitionInfo(consumer, partition);
  }

  @Override
  public void close() {
    try {
      connections.close();
    } finally {
      try {
        manager.close();
      } finally {
        netty.close();
      }
    }
  }
}
