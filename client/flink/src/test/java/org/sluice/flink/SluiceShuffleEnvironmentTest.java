package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.deployment.TaskDeploymentDescriptorFactory.ShuffleDescriptorAndIndex;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.NettyShuffleServiceFactory;
import org.apache.flink.runtime.io.network.TaskEventDispatcher;
import org.apache.flink.runtime.io.network.api.writer.ResultPartitionWriter;
import org.apache.flink.runtime.io.network.partition.PipelinedResultPartition;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleIOOwnerContext;
import org.apache.flink.util.concurrent.ScheduledExecutorServiceAdapter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.read.SluiceInputGate;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.Metrics;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.AllocationId;
import org.sluice.flink.write.SluiceResultPartition;

class SluiceShuffleEnvironmentTest {
  private static final int SLOTS = 2;
  private static final MemorySize MEMORY = MemorySize.ofMebiBytes(8);
  private static final int BUFFERS = 256;

  private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(1);
  private final ResourceID self = ResourceID.generate();
  private final Metrics metrics = new Metrics();
  private final IntermediateDataSetID dataSet = new IntermediateDataSetID();
  private FakeManager manager;
  private SluiceShuffleEnvironment environment;
  private ShuffleIOOwnerContext owner;

  @BeforeEach
  void make() throws Exception {
    manager = new FakeManager();
    Configuration configuration = new Configuration();
    configuration.set(SluiceOptions.MANAGER_ADDRESS, manager.address().toString());
    configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MEMORY);
    ShuffleEnvironmentContext context =
        new ShuffleEnvironmentContext(
            configuration,
            self,
            MEMORY,
            false,
            InetAddress.getLoopbackAddress(),
            SLOTS,
            new String[] {System.getProperty("java.io.tmpdir")},
            new TaskEventDispatcher(),
            new Metrics(),
            threads,
            new ScheduledExecutorServiceAdapter(threads));
    environment =
        new SluiceShuffleEnvironment(
            context,
            new NettyShuffleServiceFactory().createShuffleEnvironment(context),
            manager.client());
    owner =
        environment.createShuffleIOOwnerContext(
            "a task", ExecutionAttemptID.randomId(), metrics);
  }

  @AfterEach
  void end() throws Exception {
    environment.close();
    manager.close();
    threads.shutdownNow();
  }

  private ResultPartitionID id(int index) {
    return new ResultPartitionID(
        new IntermediateResultPartitionID(dataSet, index), ExecutionAttemptID.randomId());
  }

  private ShuffleDescriptor descriptor(ResultPartitionType type, int index, int bufferSize) {
    return type == ResultPartitionType.BLOCKING
        ? new SluiceShuffleDescriptor(
            id(index),
            "app.job",
            dataSet.toString(),
            new WorkerAddress("worker-1", "127.0.0.1", 9),
            new AllocationId(1, 1, index),
            4,
            bufferSize,
            "lz4")
        : new NettyShuffleDescriptor(
            self,
            NettyShuffleDescriptor.LocalExecutionPartitionConnectionInfo.INSTANCE,
            id(index));
  }

  private List<ResultPartitionWriter> results(int bufferSize, ResultPartitionType... types) {
    List<ResultPartitionDeploymentDescriptor> descriptors = new ArrayList<>();
    for (ResultPartitionType type : types) {
      int index = descriptors.size();
      descriptors.add(
          new ResultPartitionDeploymentDescriptor(
              new PartitionDescriptor(
                  dataSet,
                  types.length,
                  new IntermediateResultPartitionID(dataSet, index),
                  type,
                  4,
                  0,
                  false,
                  true,
                  false),
              descriptor(type, index, bufferSize),
              128));
    }
    return environment.createResultPartitionWriters(owner, descriptors);
  }

  private List<IndexedInputGate> gates(ResultPartitionType... types) throws Exception {
    List<InputGateDeploymentDescriptor> descriptors = new ArrayList<>();
    for (ResultPartitionType type : types) {
      descriptors.add(
          new InputGateDeploymentDescriptor(
              dataSet,
              type,
              1,
              new ShuffleDescriptorAndIndex[] {
                new ShuffleDescriptorAndIndex(descriptor(type, 0, 32_768), 0)
              }));
    }
    return environment.createInputGates(owner, (job, set, partition) -> {}, descriptors);
  }

  @Test
  @DisplayName("the data port is that of Flink's own shuffle, and nothing occupies the TaskManager")
  void start() throws Exception {
    assertTrue(environment.start() >= 0);
    results(32_768, ResultPartitionType.BLOCKING).get(0).setup();
    assertEquals(List.of(), List.copyOf(environment.getPartitionsOccupyingLocalResources()));
  }

  @Test
  @DisplayName("blocking results and inputs are ours, the others Flink's own")
  void byType() throws Exception {
    List<ResultPartitionWriter> ours =
        results(32_768, ResultPartitionType.BLOCKING, ResultPartitionType.BLOCKING);
    assertEquals(SluiceResultPartition.class, ours.get(0).getClass());
    assertEquals(SluiceResultPartition.class, ours.get(1).getClass());
    assertEquals(
        PipelinedResultPartition.class,
        results(32_768, ResultPartitionType.PIPELINED_BOUNDED).get(0).getClass());
    assertEquals(
        SluiceInputGate.class, gates(ResultPartitionType.BLOCKING).get(0).getClass());
    assertEquals(
        SingleInputGate.class, gates(ResultPartitionType.PIPELINED_BOUNDED).get(0).getClass());
  }

  @Test
  @DisplayName("a task that mixes both kinds is refused, and what to set is named")
  void mixed() {
    IllegalStateException results =
        assertThrows(
            IllegalStateException.class,
            () ->
                results(
                    32_768, ResultPartitionType.BLOCKING, ResultPartitionType.PIPELINED_BOUNDED));
    assertTrue(results.getMessage().contains("execution.batch-shuffle-mode"));
    assertTrue(results.getMessage().contains("a task"));
    IllegalStateException gates =
        assertThrows(
            IllegalStateException.class,
            () -> gates(ResultPartitionType.PIPELINED_BOUNDED, ResultPartitionType.BLOCKING));
    assertTrue(gates.getMessage().contains("inputs"));
  }

  @Test
  @DisplayName("another segment size than the JobManager's is refused by name")
  void segmentSize() {
    IllegalStateException refusal =
        assertThrows(
            IllegalStateException.class, () -> results(4096, ResultPartitionType.BLOCKING));
    assertTrue(refusal.getMessage().contains("taskmanager.memory.segment-size"));
    assertTrue(refusal.getMessage().contains("4096"));
  }

  @Test
  @DisplayName("a result's pool is fixed and a gate's floats, both out of Flink's network memory")
  void pools() throws Exception {
    SluiceResultPartition result =
        (SluiceResultPartition) results(32_768, ResultPartitionType.BLOCKING).get(0);
    result.setup();
    int ofResult = BUFFERS / 2 / SLOTS;
    assertEquals(ofResult, result.getBufferPool().getNumBuffers());
    assertEquals(ofResult, result.getBufferPool().getMaxNumberOfMemorySegments());
    assertEquals(ofResult, result.getBufferPool().getNumberOfRequiredMemorySegments());
    IndexedInputGate gate = gates(ResultPartitionType.BLOCKING).get(0);
    gate.setup();
    gate.close();
    result.close();
  }

  @Test
  @DisplayName("metrics stand in Flink's own groups, one for each result and gate")
  void metrics() throws Exception {
    results(32_768, ResultPartitionType.BLOCKING, ResultPartitionType.BLOCKING);
    gates(ResultPartitionType.BLOCKING, ResultPartitionType.BLOCKING);
    for (int index = 0; index < 2; index++) {
      for (String name : new String[] {"waitForCreditMs", "openRetries"}) {
        assertEquals(0, metrics.count("Shuffle.Netty.Output.Sluice." + index + "." + name));
      }
      for (String name : new String[] {"waitForDataMs", "readRetries"}) {
        assertEquals(0, metrics.count("Shuffle.Netty.Input.Sluice." + index + "." + name));
      }
    }
  }

  @Test
  @DisplayName("ranges are those that Flink says, one input for each descriptor")
  void inputs() throws Exception {
    IndexedInputGate gate = gates(ResultPartitionType.BLOCKING).get(0);
    assertEquals(1, gate.getNumberOfInputChannels());
    List<Integer> subpartitions = new ArrayList<>();
    gate.getChannel(0).getConsumedSubpartitionIndexSet().values().forEach(subpartitions::add);
    assertEquals(List.of(1), subpartitions);
    assertFalse(gate.isFinished());
  }
}
